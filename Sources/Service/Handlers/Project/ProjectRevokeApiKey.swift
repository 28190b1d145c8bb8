import Identity
import Messages

/// postern.v1.Project/RevokeApiKey
enum ProjectRevokeApiKey: SlowMethod {
    static func handle(_ request: ProjectRevokeApiKeyRequest, _ call: Call) async throws -> ProjectRevokeApiKeyResponse
    {
        let key = try await call.project.callers.revoke(
            id: request.apiKeyID, by: call.caller, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectRevokeApiKeyResponse(apiKey: key)
    }
}
