import Identity
import Messages
import Store

/// postern.v1.Tenants/Delete
enum TenantsDelete: SlowMethod {
    static func purpose(of request: TenantsDeleteRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: TenantsDeleteRequest, _ call: Call) async throws -> TenantsDeleteResponse {
        try await call.project.tenants.tenant(call.tenantID).delete(
            validateOnly: request.validateOnly, origin: call.origin)
        return TenantsDeleteResponse()
    }
}
