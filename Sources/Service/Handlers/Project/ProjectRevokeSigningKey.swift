import Identity
import Messages
import Signing

/// postern.v1.Project/RevokeSigningKey
enum ProjectRevokeSigningKey: SlowMethod {
    static func handle(
        _ request: ProjectRevokeSigningKeyRequest, _ call: Call
    ) async throws -> ProjectRevokeSigningKeyResponse {
        let revoked = try await call.project.signingKeys.revoke(
            request.keyID, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectRevokeSigningKeyResponse(key: revoked.key, successor: revoked.successor)
    }
}
