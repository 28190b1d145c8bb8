import Base
import Identity
import Messages
import Store

/// postern.v1.Providers/List
enum ProvidersList: PageMethod {
    static func handle(
        _ request: ProvidersListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProvidersListResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.providers, prefix: TenantPrefix(call.tenantID),
            from: page.start { TenantTextKey(call.tenantID, $0) },
            bounds: page.bounds
        ) { row in firstField(StoredProvider.FieldNumber.provider, in: row.value).map { .item($0) } ?? .skipped }
        return .list(
            ProvidersListResponse.FieldNumber.providers, found.items,
            ProvidersListResponse(nextPageToken: page.token(after: found) { $0.text }))
    }
}
