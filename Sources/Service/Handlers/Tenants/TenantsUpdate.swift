import Base
import Identity
import Messages

/// postern.v1.Tenants/Update
enum TenantsUpdate: SlowMethod {
    static func handle(_ request: TenantsUpdateRequest, _ call: Call) async throws -> TenantsUpdateResponse {
        let paths = request.updateMask?.paths ?? []
        guard !paths.isEmpty else {
            throw Failure.invalid("INVALID_UPDATE_MASK", field: "update_mask", "must name the settings to change")
        }
        let change = try TenantChange(request.tenant ?? Messages.Tenant(), paths: paths)
        let settings = try await call.project.tenants.tenant(call.settings).update(
            change, validateOnly: request.validateOnly, origin: call.origin)
        return TenantsUpdateResponse(tenant: settings.tenant)
    }
}
