import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Tenants/UpdateMany
enum TenantsUpdateMany: SlowMethod {
    static func isLong(_ request: TenantsUpdateManyRequest) -> Bool { true }

    static func purpose(of request: TenantsUpdateManyRequest, _ rule: MethodDescriptor) -> WritePurpose {
        .ofSettings(request.updateMask?.paths)
    }

    static func handle(_ request: TenantsUpdateManyRequest, _ call: Call) async throws -> TenantsUpdateManyResponse {
        let limits = call.limits
        guard (0...limits.administration.tenantsUpdatedPerCallMax).contains(Int(request.pageSize)) else {
            throw Failure.invalid(
                .invalidPageSize, field: "page_size", "must be 0 to \(limits.administration.tenantsUpdatedPerCallMax)")
        }
        let query = try TenantQuery(request.filter, limits: limits)
        guard query.hasConditions != request.allTenants else {
            throw Failure.invalid(
                .invalidQuery, field: "filter", "must have a condition, or else all_tenants be set")
        }
        let mask = try UpdateMask<Messages.Tenant>(request.updateMask?.paths)
        let change = try TenantChange(request.tenant ?? Messages.Tenant(), mask, isProjectAdmin: true)
        let page = try call.page(request)
        let countMax =
            request.pageSize == 0 ? limits.administration.tenantsUpdatedPerCallDefault : Int(request.pageSize)
        return try await call.project.tenants.update(
            query, by: change, after: page.last, countMax: countMax, validateOnly: request.validateOnly,
            origin: call.origin, pageToken: page.token(behind:))
    }
}
