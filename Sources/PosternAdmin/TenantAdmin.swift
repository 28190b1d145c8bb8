public import Base
public import Messages
public import PosternClient

/// The administrator of one tenant: manages users, identity providers, mail and settings, and reads refusals.
///
/// Needs a credential with the role tenant-admin for this tenant. Every method may be called from any task. The
/// tenant's self-service switches do not bind administrators. Every call throws `Failure`: TENANT_NOT_FOUND for a
/// tenant that does not exist, PROJECT_DISABLED for calls about users where `disable_auth` is set and the credential
/// is not a project-admin's.
///
/// ```swift
/// let tenant = TenantAdmin(channel: channel, tenantID: "acme")
/// let ada = try await tenant.createUser(email: "ada@example.com", displayName: "Ada")
/// try await tenant.setCustomUserClaims(ada.uid, json: #"{"role":"editor"}"#)
/// ```
public struct TenantAdmin: Sendable {
    let channel: Channel
    /// The tenant's id. Empty: the tenant that the credential is bound to, or else the default pool.
    public let tenantID: Text

    /// Creates an administrator that calls over `channel`. Makes no call.
    public init(channel: Channel, tenantID: Text) {
        self.channel = channel
        self.tenantID = tenantID
    }

    var users: UsersClient { UsersClient(channel: channel) }
    var tenants: TenantsClient { TenantsClient(channel: channel) }
}

// MARK: - Settings

extension TenantAdmin {
    /// Returns the tenant's settings.
    public func settings(options: CallOptions = .init()) async throws(Failure) -> Tenant {
        try await required(tenants.get(TenantsGetRequest(tenantID: tenantID), options: options).tenant)
    }

    /// Changes the tenant's settings. They hold for every request that starts after the answer, on every connection.
    ///
    /// `revision` is the revision of the settings that the change is based on; nil for any. Throws INVALID_UPDATE_MASK
    /// for an empty change, INSUFFICIENT_PERMISSION for settings of a project-admin, and REVISION_MISMATCH.
    @discardableResult
    public func updateSettings(
        _ change: TenantSettingsChange, ifRevision revision: Int64? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        let fields = change.fields
        let request = TenantsUpdateRequest(
            tenantID: tenantID, tenant: fields.message, updateMask: fields.mask, expectedRevision: revision ?? 0)
        return try await required(sendOnce(tenants.update, request, options).tenant)
    }
}

// MARK: - Quotas

extension TenantAdmin {
    /// Returns how much of its quotas the tenant uses, and how often each quota refused.
    public func usage(options: CallOptions = .init()) async throws(Failure) -> TenantsGetUsageResponse {
        try await tenants.getUsage(TenantsGetUsageRequest(tenantID: tenantID), options: options)
    }
}

// MARK: - What the toggles refused

extension TenantAdmin {
    /// Lists the refusals of the self-service switches, the newest first: the last 10,000. An email or a phone number
    /// selects its refusals, a decision id the one refusal that a user quotes. `from` is inclusive, `to` is exclusive.
    public func listDenials(
        from: Timestamp? = nil, to: Timestamp? = nil, email: Text = .empty, phoneNumber: Text = .empty,
        decisionID: Text = .empty, pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<Denial> {
        Listing { [tenants, tenantID] token throws(Failure) in
            let page = try await tenants.listDenials(
                TenantsListDenialsRequest(
                    tenantID: tenantID, fromMicros: from?.microseconds ?? 0, toMicros: to?.microseconds ?? 0,
                    pageSize: pageSize, pageToken: token, email: email, phoneNumber: phoneNumber,
                    decisionID: decisionID), options: options)
            return (page.denials, page.nextPageToken)
        }
    }

    /// Returns how often each operation was refused, for each hour that the range touches, the newest hour first. The
    /// counts of an hour are deleted some time after 90 days. An older server returns the 1,000 oldest counts only.
    public func denialCounts(
        from: Timestamp? = nil, to: Timestamp? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> [DenialCount] {
        let range = TenantsListDenialsRequest(
            tenantID: tenantID, fromMicros: from?.microseconds ?? 0, toMicros: to?.microseconds ?? 0)
        return try await range.allCounts { request throws(Failure) in
            try await tenants.listDenials(request, options: options)
        }
    }

    /// Follows the refusals as they happen, without a gap. `sequence` is the last refusal to leave out: 0 begins with
    /// the oldest refusal that is kept, nil begins now.
    public func watchDenials(after sequence: Int64? = nil, options: CallOptions = .init()) -> DenialFeed {
        DenialFeed(admin: self, after: sequence, options: options)
    }
}
