import Identity
import Messages

/// postern.v1.Providers/Rebind
enum ProvidersRebind: SlowMethod {
    static func handle(_ request: ProvidersRebindRequest, _ call: Call) async throws -> ProvidersRebindResponse {
        let issuers = try await call.project.providers.rebind(
            request.providerID, from: request.fromIssuer, tenantID: call.tenantID, validateOnly: request.validateOnly,
            origin: call.origin)
        return ProvidersRebindResponse(issuers: issuers)
    }
}
