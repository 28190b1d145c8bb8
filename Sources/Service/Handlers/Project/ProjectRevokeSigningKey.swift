import Identity
import Messages

/// postern.v1.Project/RevokeSigningKey
enum ProjectRevokeSigningKey: SlowMethod {
    static func handle(
        _ request: ProjectRevokeSigningKeyRequest, _ call: Call
    ) async throws -> ProjectRevokeSigningKeyResponse {
        try await call.project.signingKeys.revoke(
            request.keyID, validateOnly: request.validateOnly, origin: call.origin)
    }
}
