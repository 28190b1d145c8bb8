import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Tenants/Update
enum TenantsUpdate: SlowMethod {
    static func purpose(of request: TenantsUpdateRequest, _ rule: MethodDescriptor) -> WritePurpose {
        .ofSettings(request.updateMask?.paths)
    }

    static func handle(_ request: TenantsUpdateRequest, _ call: Call) async throws -> TenantsUpdateResponse {
        let mask = try UpdateMask<Messages.Tenant>(request.updateMask?.paths)
        let wanted = request.tenant ?? Messages.Tenant()
        // Otherwise a request that names its tenant inside of `tenant` alone would change the default pool.
        guard wanted.tenantID.isEmpty || wanted.tenantID == call.tenantID else {
            throw Failure(
                .tenantIDMismatch,
                "tenant_id and tenant.tenant_id name different tenants; leave tenant.tenant_id empty.")
        }
        let change = try TenantChange(wanted, mask, isProjectAdmin: call.caller?.has(.projectAdmin) == true)
        let tenantID = call.settings.tenantID
        let tenant = try await call.project.tenants.tenant(tenantID).update(
            change, expected: request.expectedRevision, validateOnly: request.validateOnly, origin: call.origin)
        guard request.endSessionsWithoutSecondFactor, !request.validateOnly else {
            return TenantsUpdateResponse(tenant: tenant)
        }
        // The present settings: those of a repeated request may have been changed again.
        let settings = try call.project.store.read { try call.project.tenants.settings(of: tenantID, in: $0) }
        let count = try await call.project.secondFactorEnrollments.endSessionsWithoutFactor(
            settings, origin: call.origin)
        return TenantsUpdateResponse(tenant: tenant, endedSessionCount: count)
    }
}

extension WritePurpose {
    /// Shutting a tenant, switching things off and on, and giving it room are also possible if the tenant is full.
    /// Every change of settings is an event with both values: values that may be long grow the tenant like anything
    /// else.
    static func ofSettings(_ paths: [Text]?) -> WritePurpose {
        guard let mask = try? UpdateMask<Messages.Tenant>(paths) else { return .growth }
        return mask.paths.allSatisfy(\.isShort) ? .relief : .growth
    }
}
