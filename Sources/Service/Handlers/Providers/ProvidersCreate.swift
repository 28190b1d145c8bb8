import Identity
import Messages
import Rules

/// postern.v1.Providers/Create
enum ProvidersCreate: SlowMethod {
    static func handle(_ request: ProvidersCreateRequest, _ call: Call) async throws -> ProvidersCreateResponse {
        let provider = try await call.project.providers.create(
            request.provider ?? Provider(), tenantID: call.tenantID, isDisabled: request.disabled,
            isProjectAdmin: call.caller?.has(.projectAdmin) == true, validateOnly: request.validateOnly,
            origin: call.origin)
        return ProvidersCreateResponse(provider: provider)
    }
}
