import Identity
import Messages
import Rules
import Store

/// postern.v1.Providers/Update
enum ProvidersUpdate: SlowMethod {
    /// Switching a provider off ends something. Every other change may add to the configuration.
    static func purpose(of request: ProvidersUpdateRequest, _ rule: MethodDescriptor) -> WritePurpose {
        guard request.provider?.enabled != true, let mask = try? UpdateMask<Provider>(request.updateMask?.paths) else {
            return .growth
        }
        return mask.paths.allSatisfy { $0 == .enabled } ? .relief : .growth
    }

    static func handle(_ request: ProvidersUpdateRequest, _ call: Call) async throws -> ProvidersUpdateResponse {
        let change = try ProviderChange(request.provider ?? Provider(), UpdateMask(request.updateMask?.paths))
        let provider = try await call.project.providers.update(
            change, tenantID: call.tenantID, isProjectAdmin: call.caller?.has(.projectAdmin) == true,
            validateOnly: request.validateOnly, origin: call.origin)
        return ProvidersUpdateResponse(provider: provider)
    }
}
