import Base
import Identity
import Messages

/// postern.v1.Project/CreateApiKey
enum ProjectCreateApiKey: SlowMethod {
    static func handle(_ request: ProjectCreateApiKeyRequest, _ call: Call) async throws -> ProjectCreateApiKeyResponse
    {
        let wanted = WantedKey(
            role: request.role, scope: request.scope, displayName: request.displayName,
            trustsEndUserIP: request.trustedEndUserIP, exportsPasswordHashes: request.exportPasswordHashes,
            quotas: request.quotas,
            restrictions: KeyRestrictions(
                expiresAtMicros: request.expiresAtMicros, allowedAddresses: request.allowedAddresses))
        let (key, secret) = try await call.project.callers.create(
            wanted, by: call.caller, validateOnly: request.validateOnly, origin: call.origin)
        return ProjectCreateApiKeyResponse(apiKey: key, secretKey: request.validateOnly ? .empty : secret)
    }
}
