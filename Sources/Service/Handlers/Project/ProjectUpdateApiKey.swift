import Base
import Identity
import Messages
import Rules

/// postern.v1.Project/UpdateApiKey
enum ProjectUpdateApiKey: SlowMethod {
    static func handle(_ request: ProjectUpdateApiKeyRequest, _ call: Call) async throws -> ProjectUpdateApiKeyResponse
    {
        let mask = try UpdateMask<ProjectUpdateApiKeyRequest>(request.updateMask?.paths)
        let key = try await call.project.callers.update(
            id: request.apiKeyID, displayName: mask.contains(.displayName) ? request.displayName : nil,
            quotas: CallerQuotasChange(request.quotas, mask, at: .quotas),
            restrictions: KeyRestrictions(
                expiresAtMicros: mask.contains(.expiresAtMicros) ? request.expiresAtMicros : nil,
                allowedAddresses: mask.contains(.allowedAddresses) ? request.allowedAddresses : nil,
                previousSecretUntilMicros: mask.contains(.previousSecretUntilMicros)
                    ? request.previousSecretUntilMicros : nil),
            by: call.caller, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectUpdateApiKeyResponse(apiKey: key)
    }
}
