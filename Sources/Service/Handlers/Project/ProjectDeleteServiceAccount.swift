import Identity
import Messages

/// postern.v1.Project/DeleteServiceAccount
enum ProjectDeleteServiceAccount: SlowMethod {
    static func handle(
        _ request: ProjectDeleteServiceAccountRequest, _ call: Call
    ) async throws -> ProjectDeleteServiceAccountResponse {
        try await call.project.serviceAccounts.delete(
            id: request.serviceAccountID, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectDeleteServiceAccountResponse()
    }
}
