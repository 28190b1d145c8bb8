import Identity
import Messages
import Store

/// postern.v1.Project/ListServiceAccountKeys
enum ProjectListServiceAccountKeys: FastMethod {
    static func handle(
        _ request: ProjectListServiceAccountKeysRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectListServiceAccountKeysResponse> {
        let account = try transaction.serviceAccount(request.serviceAccountID)
        return .message(
            ProjectListServiceAccountKeysResponse(
                keys: try transaction.serviceAccountKeys(of: account.serviceAccountID)))
    }
}
