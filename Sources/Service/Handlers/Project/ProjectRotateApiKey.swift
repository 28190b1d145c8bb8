import Base
import Identity
import Messages

/// postern.v1.Project/RotateApiKey
enum ProjectRotateApiKey: SlowMethod {
    static func handle(_ request: ProjectRotateApiKeyRequest, _ call: Call) async throws -> ProjectRotateApiKeyResponse
    {
        let (key, secret) = try await call.project.callers.rotate(
            id: request.apiKeyID, overlapSeconds: request.overlapSeconds, by: call.caller,
            validateOnly: request.validateOnly, origin: call.origin)
        return ProjectRotateApiKeyResponse(apiKey: key, secretKey: request.validateOnly ? .empty : secret)
    }
}
