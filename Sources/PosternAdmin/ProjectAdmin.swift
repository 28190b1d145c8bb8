public import Base
public import Messages
public import PosternClient

/// What an administrator does with the project: tenants, credentials, signing keys. `tenant(_:)` leads to the users.
///
/// Needs a credential with the role project-admin. Safe to use from any task. Every call throws the server's refusal,
/// or what kept it from the server, as `Failure`; docs/admin.md tells what happens to answers that get lost.
public struct ProjectAdmin: Sendable {
    let channel: Channel

    public init(channel: Channel) { self.channel = channel }

    /// "" is the default pool. Asks nothing: a tenant that does not exist shows at the first call, TENANT_NOT_FOUND.
    public func tenant(_ tenantID: Text) -> TenantAdmin { TenantAdmin(channel: channel, tenantID: tenantID) }

    /// The server's version, protocol and limits.
    public func serverInfo(options: CallOptions = .init()) async throws(Failure) -> ProjectServerInfoResponse {
        try await project.serverInfo(ProjectServerInfoRequest(), options: options)
    }

    /// Counters since the server's start.
    public func stats(options: CallOptions = .init()) async throws(Failure) -> [StatsValue] {
        try await project.stats(ProjectStatsRequest(), options: options).values
    }

    var project: ProjectClient { ProjectClient(channel: channel) }
    private var tenants: TenantsClient { TenantsClient(channel: channel) }
}

// MARK: - Tenants

extension ProjectAdmin {
    /// `tenantID`: [a-z0-9-]{4,64}, made by the server if empty. What `settings` leaves out takes the defaults:
    /// password sign-up on, everything else off. `synthetic`: for load tests. TENANT_ID_EXISTS, also of a deleted one.
    @discardableResult
    public func createTenant(
        _ tenantID: Text = .empty, settings: TenantSettingsChange = .init(), synthetic: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        var fields = settings.fields
        fields.set("synthetic", \.synthetic, synthetic ? true : nil)
        let request = TenantsCreateRequest(tenantID: tenantID, tenant: fields.message, updateMask: fields.mask)
        return try await part(keyed(tenants.create, request, options).tenant)
    }

    /// TENANT_NOT_FOUND.
    public func getTenant(_ tenantID: Text, options: CallOptions = .init()) async throws(Failure) -> Tenant {
        try await tenant(tenantID).settings(options: options)
    }

    /// In the order of their ids.
    public func listTenants(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<Tenant> {
        Listing { [tenants] token throws(Failure) in
            let page = try await tenants.list(
                TenantsListRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.tenants, page.nextPageToken)
        }
    }

    @discardableResult
    public func updateTenant(
        _ tenantID: Text, _ change: TenantSettingsChange, options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        try await tenant(tenantID).updateSettings(change, options: options)
    }

    /// With all its users; the id is never used again.
    public func deleteTenant(_ tenantID: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = TenantsDeleteRequest(tenantID: tenantID)
        _ = try await keyed(tenants.delete, request, options)
    }
}
