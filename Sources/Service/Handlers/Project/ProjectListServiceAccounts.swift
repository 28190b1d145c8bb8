import Base
import Identity
import Messages
import Store

/// postern.v1.Project/ListServiceAccounts: deleted ones are left out, and those of deleted tenants.
enum ProjectListServiceAccounts: PageMethod {
    static func handle(
        _ request: ProjectListServiceAccountsRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListServiceAccountsResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.serviceAccounts, from: page.start { TextKey($0) }, bounds: page.bounds
        ) { row in
            let item = try PagedRow.undeleted(
                row.value, item: StoredServiceAccount.FieldNumber.serviceAccount,
                deleted: StoredServiceAccount.FieldNumber.deleted)
            guard case .item(let account) = item else { return item }
            let isOrphan = try transaction.isOfDeletedTenant(account, scope: ServiceAccount.FieldNumber.scope)
            return isOrphan ? .skipped : item
        }
        return .list(
            ProjectListServiceAccountsResponse.FieldNumber.serviceAccounts, found.items,
            ProjectListServiceAccountsResponse(nextPageToken: page.token(after: found) { $0.text }))
    }
}
