import Base
import Identity
import Messages
import Store

/// postern.v1.Tenants/List: deleted ones are left out.
enum TenantsList: PageMethod {
    static func handle(
        _ request: TenantsListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsListResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.tenants, from: page.start { TenantPrefix($0) }, bounds: page.bounds
        ) { row in
            try .undeleted(
                row.value, item: StoredTenant.FieldNumber.tenant, deleted: StoredTenant.FieldNumber.deleted)
        }
        return .list(
            TenantsListResponse.FieldNumber.tenants, found.items,
            TenantsListResponse(nextPageToken: page.token(after: found) { $0.tenant }))
    }
}
