import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Project/ListApiKeys: a caller of one tenant reads along the index of the tenant's keys, so that neither
/// the page token nor the length of the way tells of the keys of other tenants.
enum ProjectListApiKeys: PageMethod {
    static func handle(
        _ request: ProjectListApiKeysRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListApiKeysResponse> {
        guard let caller = call.caller else { throw Failure.callerUnauthenticated }
        let page = try call.page(request)
        if let tenantID = caller.tenantID {
            let found = try transaction.page(
                of: Tables.apiKeysOfTenants, prefix: TenantPrefix(tenantID),
                from: page.start { TenantTextKey(tenantID, $0) }, bounds: page.bounds
            ) { row in
                guard let key = try transaction.borrowedValue(Tables.apiKeys, TextKey(try row.key.text)) else {
                    return .skipped
                }
                return try item(key, for: caller) ?? .rejected(key)
            }
            return try reply(found.items, page.token(after: found) { $0.text }, transaction)
        }
        let found = try transaction.page(
            of: Tables.apiKeys, from: page.start { TextKey($0) }, bounds: page.bounds
        ) { row in
            guard case .item(let key)? = try item(row.value, for: caller),
                try !transaction.isOfDeletedTenant(key, scope: ApiKey.FieldNumber.scope)
            else { return .skipped }
            return .item(key)
        }
        return try reply(found.items, page.token(after: found) { $0.text }, transaction)
    }

    /// Nil for a key that the caller does not see.
    private static func item(_ record: UnsafeRawBufferPointer, for caller: Caller) throws -> PagedRow? {
        guard let bytes = firstField(StoredApiKey.FieldNumber.apiKey, in: record),
            try caller.mayManage(ApiKey(stored: bytes))
        else { return nil }
        return .item(bytes)
    }

    private static func reply(
        _ items: [UnsafeRawBufferPointer], _ token: Text, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListApiKeysResponse> {
        let keys = try items.map { try transaction.withLastUse(ApiKey(stored: $0)) }
        return .message(ProjectListApiKeysResponse(apiKeys: keys, nextPageToken: token))
    }
}
