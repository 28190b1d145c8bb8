import Identity
import Messages
import Store

/// postern.v1.Tenants/List
enum TenantsList: FastMethod {
    static func handle(
        _ request: TenantsListRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsListResponse> {
        let page = try call.page(request)
        // One more than the page tells whether there is a next one.
        var tenants = try call.project.tenants.list(after: page.last, limit: page.size + 1, in: transaction)
        var response = TenantsListResponse()
        if tenants.count > page.size {
            tenants.removeLast()
            response.nextPageToken = page.token(after: tenants.last?.tenantID)
        }
        response.tenants = tenants
        return .message(response)
    }
}
