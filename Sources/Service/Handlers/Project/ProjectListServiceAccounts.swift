import Identity
import Messages
import Store

/// postern.v1.Project/ListServiceAccounts
enum ProjectListServiceAccounts: FastMethod {
    static func handle(
        _ request: ProjectListServiceAccountsRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListServiceAccountsResponse> {
        let page = try call.page(request)
        var accounts = try transaction.serviceAccounts(after: page.last, limit: page.size + 1)
        var response = ProjectListServiceAccountsResponse()
        if accounts.count > page.size {
            accounts.removeLast()
            response.nextPageToken = page.token(after: accounts.last?.serviceAccountID)
        }
        response.serviceAccounts = accounts
        return .message(response)
    }
}
