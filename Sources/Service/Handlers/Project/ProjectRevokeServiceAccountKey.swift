import Identity
import Messages

/// postern.v1.Project/RevokeServiceAccountKey
enum ProjectRevokeServiceAccountKey: SlowMethod {
    static func handle(
        _ request: ProjectRevokeServiceAccountKeyRequest, _ call: Call
    ) async throws -> ProjectRevokeServiceAccountKeyResponse {
        let key = try await call.project.serviceAccounts.revokeKey(
            request.keyID, of: request.serviceAccountID, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectRevokeServiceAccountKeyResponse(key: key)
    }
}
