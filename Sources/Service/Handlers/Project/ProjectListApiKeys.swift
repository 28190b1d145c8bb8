import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Project/ListApiKeys
enum ProjectListApiKeys: PageMethod {
    static func handle(
        _ request: ProjectListApiKeysRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListApiKeysResponse> {
        guard let caller = call.caller else { throw Failure.callerUnauthenticated }
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.apiKeys, from: page.start { TextKey($0) }, bounds: page.bounds
        ) { row in
            guard let bytes = firstField(StoredApiKey.FieldNumber.apiKey, in: row.value),
                try caller.mayManage(ApiKey(decoding: bytes))
            else { return .skipped }
            return .item(bytes)
        }
        let keys = try found.items.map { try transaction.withLastUse(ApiKey(decoding: $0)) }
        return .message(
            ProjectListApiKeysResponse(apiKeys: keys, nextPageToken: page.token(after: found) { $0.text }))
    }
}
