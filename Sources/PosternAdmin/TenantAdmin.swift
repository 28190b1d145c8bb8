public import Base
public import Messages
public import PosternClient

/// What an administrator does in one tenant: users, sign-in providers, mail, settings, refusals.
///
/// Needs a credential with the role tenant-admin for this tenant. Safe to use from any task. Nothing here is bound by
/// the toggles of self-service. Every call throws `Failure`: TENANT_NOT_FOUND where there is no such tenant,
/// PROJECT_DISABLED for users of one whose `disable_auth` is set.
public struct TenantAdmin: Sendable {
    let channel: Channel
    /// "": the tenant that the credential is bound to, or else the default pool.
    public let tenantID: Text

    public init(channel: Channel, tenantID: Text) {
        self.channel = channel
        self.tenantID = tenantID
    }

    var users: UsersClient { UsersClient(channel: channel) }
    var tenants: TenantsClient { TenantsClient(channel: channel) }
}

// MARK: - Settings

extension TenantAdmin {
    public func settings(options: CallOptions = .init()) async throws(Failure) -> Tenant {
        try await part(tenants.get(TenantsGetRequest(tenantID: tenantID), options: options).tenant)
    }

    /// Binds every request that starts after the answer, on every connection. INVALID_UPDATE_MASK for an empty change.
    @discardableResult
    public func updateSettings(
        _ change: TenantSettingsChange, options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        let fields = change.fields
        let request = TenantsUpdateRequest(tenantID: tenantID, tenant: fields.message, updateMask: fields.mask)
        return try await part(tenants.update(request, options: options).tenant)
    }
}

// MARK: - Quotas

extension TenantAdmin {
    /// What the tenant uses of its quotas, and how often each refused.
    public func usage(options: CallOptions = .init()) async throws(Failure) -> TenantsGetUsageResponse {
        try await tenants.getUsage(TenantsGetUsageRequest(tenantID: tenantID), options: options)
    }
}

// MARK: - What the toggles refused

extension TenantAdmin {
    /// Newest first: the last 10,000. `from` is inclusive, `to` is not.
    public func listDenials(
        from: Timestamp? = nil, to: Timestamp? = nil, pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<Denial> {
        Listing { [tenants, tenantID] token throws(Failure) in
            let page = try await tenants.listDenials(
                TenantsListDenialsRequest(
                    tenantID: tenantID, fromMicros: from?.microseconds ?? 0, toMicros: to?.microseconds ?? 0,
                    pageSize: pageSize, pageToken: token), options: options)
            return (page.denials, page.nextPageToken)
        }
    }

    /// How often each operation was refused, in each hour that the range touches.
    public func denialCounts(
        from: Timestamp? = nil, to: Timestamp? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> [DenialCount] {
        let request = TenantsListDenialsRequest(
            tenantID: tenantID, fromMicros: from?.microseconds ?? 0, toMicros: to?.microseconds ?? 0, pageSize: 1)
        return try await tenants.listDenials(request, options: options).counts
    }

    /// The refusals as they happen, without a gap; `after`: behind this sequence (0: all that are kept);
    /// nil: from now on.
    public func watchDenials(after sequence: Int64? = nil, options: CallOptions = .init()) -> DenialFeed {
        DenialFeed(admin: self, after: sequence, options: options)
    }
}
