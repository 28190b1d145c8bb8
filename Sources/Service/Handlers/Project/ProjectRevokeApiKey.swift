import Identity
import Messages
import Store

/// postern.v1.Project/RevokeApiKey
enum ProjectRevokeApiKey: SlowMethod {
    /// A key is revoked once, so revoking without end stores nothing.
    static func purpose(of request: ProjectRevokeApiKeyRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: ProjectRevokeApiKeyRequest, _ call: Call) async throws -> ProjectRevokeApiKeyResponse
    {
        let key = try await call.project.callers.revoke(
            id: request.apiKeyID, by: call.caller, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectRevokeApiKeyResponse(apiKey: key)
    }
}
