import Base
import Identity
import Messages
import Store

/// postern.v1.Providers/List
enum ProvidersList: FastMethod {
    static func handle(
        _ request: ProvidersListRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProvidersListResponse> {
        let page = try call.page(request)
        let (providers, hasMore) = try transaction.providers(
            tenantID: call.tenantID, after: page.last, limit: page.size, byteCountMax: call.limits.pageBytesMax)
        let next = hasMore ? page.token(after: providers.last?.providerID) : .empty
        return .message(ProvidersListResponse(providers: providers, nextPageToken: next))
    }
}
