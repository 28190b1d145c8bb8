import Base
import Identity
import Messages
import Store

/// postern.v1.Project/ListApiKeys
enum ProjectListApiKeys: PageMethod {
    static func handle(
        _ request: ProjectListApiKeysRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListApiKeysResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.apiKeys, from: page.start { TextKey($0) }, bounds: page.bounds
        ) { row in firstField(StoredApiKey.FieldNumber.apiKey, in: row.value).map { .item($0) } ?? .skipped }
        return .list(
            ProjectListApiKeysResponse.FieldNumber.apiKeys, found.items,
            ProjectListApiKeysResponse(nextPageToken: page.token(after: found) { $0.text }))
    }
}
