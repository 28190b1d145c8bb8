import Base
import Identity
import Messages
import Rules

/// postern.v1.Tenants/Create
enum TenantsCreate: SlowMethod {
    static func handle(_ request: TenantsCreateRequest, _ call: Call) async throws -> TenantsCreateResponse {
        let wanted = request.tenant ?? Messages.Tenant()
        guard wanted.tenantID.isEmpty || wanted.tenantID == request.tenantID else {
            throw Failure.invalid(.invalidTenantID, field: "tenant.tenant_id", "must be empty or equal tenant_id")
        }
        let paths = request.updateMask?.paths ?? []
        let change = try TenantChange(wanted, paths: paths.filter { $0 != "synthetic" }, isProjectAdmin: true)
        let tenant = try await call.project.tenants.create(
            tenantID: request.tenantID, change: change, templateID: request.templateTenantID,
            isSynthetic: paths.contains("synthetic") && wanted.synthetic,
            validateOnly: request.validateOnly, origin: call.origin)
        return TenantsCreateResponse(tenant: tenant)
    }
}
