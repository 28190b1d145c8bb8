import Base
import Identity
import Messages
import Store

/// postern.v1.Project/ListServiceAccounts: deleted ones are left out.
enum ProjectListServiceAccounts: PageMethod {
    static func handle(
        _ request: ProjectListServiceAccountsRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListServiceAccountsResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.serviceAccounts, from: page.start { TextKey($0) }, bounds: page.bounds
        ) { row in
            try .undeleted(
                row.value, item: StoredServiceAccount.FieldNumber.serviceAccount,
                deleted: StoredServiceAccount.FieldNumber.deleted)
        }
        return .list(
            ProjectListServiceAccountsResponse.FieldNumber.serviceAccounts, found.items,
            ProjectListServiceAccountsResponse(nextPageToken: page.token(after: found) { $0.text }))
    }
}
