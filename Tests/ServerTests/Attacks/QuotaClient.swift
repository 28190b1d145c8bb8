import Base
import Messages
import TestSupport

extension TestServer {
    /// A connection with a new API key of this role; `tenantID` nil: for all tenants.
    func client(
        as role: Role, of tenantID: Text?, trustsEndUserIP: Bool = false, quotas: CallerQuotas? = nil
    ) throws -> RawClient {
        let made: ProjectCreateApiKeyResponse = try connect().call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: role, scope: Scope(tenants: tenantID.map { .tenantID($0) } ?? .all(true)),
                trustedEndUserIP: trustsEndUserIP, quotas: quotas))
        let client = try connect(authenticated: false)
        client.apiKey = made.secretKey
        return client
    }

    func makeTenant(_ tenantID: Text, _ paths: [Text] = [], _ fill: (inout Messages.Tenant) -> Void = { _ in }) throws {
        var tenant = Messages.Tenant()
        fill(&tenant)
        let _: TenantsCreateResponse = try connect().call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
    }

    func updateTenant(_ tenantID: Text, _ paths: [Text], _ fill: (inout Messages.Tenant) -> Void) throws {
        try Self.updateTenant(tenantID, paths, by: connect(), fill)
    }

    static func updateTenant(
        _ tenantID: Text, _ paths: [Text], by client: RawClient, _ fill: (inout Messages.Tenant) -> Void
    ) throws {
        var tenant = Messages.Tenant()
        fill(&tenant)
        let _: TenantsUpdateResponse = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
    }

    func usage(of tenantID: Text) throws -> [Text: QuotaUse] {
        let answer: TenantsGetUsageResponse = try connect().call(
            "postern.v1.Tenants/GetUsage", TenantsGetUsageRequest(tenantID: tenantID))
        return Dictionary(uniqueKeysWithValues: answer.quotas.map { ($0.quota, $0) })
    }
}
