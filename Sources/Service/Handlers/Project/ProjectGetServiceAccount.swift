import Identity
import Messages
import Store

/// postern.v1.Project/GetServiceAccount
enum ProjectGetServiceAccount: FastMethod {
    static func handle(
        _ request: ProjectGetServiceAccountRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectGetServiceAccountResponse> {
        .message(
            ProjectGetServiceAccountResponse(
                serviceAccount: try transaction.serviceAccount(request.serviceAccountID)))
    }
}
