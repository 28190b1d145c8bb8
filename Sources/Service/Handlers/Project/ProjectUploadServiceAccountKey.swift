import Identity
import Messages

/// postern.v1.Project/UploadServiceAccountKey
enum ProjectUploadServiceAccountKey: SlowMethod {
    static func handle(
        _ request: ProjectUploadServiceAccountKeyRequest, _ call: Call
    ) async throws -> ProjectUploadServiceAccountKeyResponse {
        let key = try await call.project.serviceAccounts.uploadKey(
            request.publicKey, of: request.serviceAccountID, lifetimeSeconds: request.lifetimeSeconds,
            by: call.caller, validateOnly: request.validateOnly, origin: call.origin, deadline: call.deadline)
        return ProjectUploadServiceAccountKeyResponse(key: key)
    }
}
