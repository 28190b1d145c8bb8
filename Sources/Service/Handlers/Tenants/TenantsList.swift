import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Tenants/List: deleted ones are left out.
enum TenantsList: PageMethod {
    static func handle(
        _ request: TenantsListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsListResponse> {
        let page = try call.page(request)
        let found = try transaction.tenants(
            TenantQuery(request.filter, limits: call.limits), after: page.last, bounds: page.bounds)
        return .list(
            TenantsListResponse.FieldNumber.tenants, found.items,
            TenantsListResponse(nextPageToken: page.token(after: found) { $0.tenant }))
    }
}
