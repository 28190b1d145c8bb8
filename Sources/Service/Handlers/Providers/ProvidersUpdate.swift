import Identity
import Messages
import Rules

/// postern.v1.Providers/Update
enum ProvidersUpdate: SlowMethod {
    static func handle(_ request: ProvidersUpdateRequest, _ call: Call) async throws -> ProvidersUpdateResponse {
        let change = try ProviderChange(request.provider ?? Provider(), UpdateMask(request.updateMask?.paths))
        let provider = try await call.project.providers.update(
            change, tenantID: call.tenantID, isProjectAdmin: call.caller?.has(.projectAdmin) == true,
            validateOnly: request.validateOnly, origin: call.origin)
        return ProvidersUpdateResponse(provider: provider)
    }
}
