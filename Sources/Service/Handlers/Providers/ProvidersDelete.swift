import Identity
import Messages
import Store

/// postern.v1.Providers/Delete
enum ProvidersDelete: SlowMethod {
    static func purpose(of request: ProvidersDeleteRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: ProvidersDeleteRequest, _ call: Call) async throws -> ProvidersDeleteResponse {
        try await call.project.providers.delete(
            request.providerID, tenantID: call.tenantID, validateOnly: request.validateOnly, origin: call.origin)
        return ProvidersDeleteResponse()
    }
}
