public import Base
public import Messages
public import PosternClient

// MARK: - Many tenants at once

extension ProjectAdmin {
    /// Lists the tenants that fulfil the filter, in the order of their ids.
    public func listTenants(
        where filter: TenantFilter, pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<Tenant> {
        Listing { [tenants] token throws(Failure) in
            let page = try await tenants.list(
                TenantsListRequest(pageSize: pageSize, pageToken: token, filter: filter), options: options)
            return (page.tenants, page.nextPageToken)
        }
    }

    /// Changes the settings of every tenant that fulfils the filter. Nil means all tenants. Returns the change of each
    /// tenant; the change is nil for a tenant that had these settings already.
    ///
    /// With `validateOnly` nothing is changed. A call that fails has changed the earlier tenants; it may be repeated.
    /// An idempotency key in the options is sent with a number behind it after the first page.
    public func updateTenants(
        where filter: TenantFilter?, _ change: TenantSettingsChange, validateOnly: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> [TenantUpdateResult] {
        let fields = change.fields
        var request = TenantsUpdateManyRequest(
            filter: filter, allTenants: filter == nil, tenant: fields.message, updateMask: fields.mask,
            validateOnly: validateOnly)
        var (results, callCount) = ([TenantUpdateResult](), 0)
        repeat {
            callCount += 1
            let page = try await tenants.updateMany(request, options: options.ofCall(callCount))
            results += page.results
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
        return results
    }

    /// Copies settings from one tenant to another. `paths`: names of settings, as in `update_mask`; empty: all settings
    /// that can be copied. Identity providers and the delivery of mail and SMS are not copied.
    ///
    /// Throws TEMPLATE_NOT_FOUND, also for an empty `templateID`, because the default pool is no template;
    /// TENANT_NOT_FOUND; and INVALID_UPDATE_MASK for a setting that is not copied.
    @discardableResult
    public func copySettings(
        from templateID: Text, to tenantID: Text, paths: [Text] = [], options: CallOptions = .init()
    ) async throws(Failure) -> Tenant {
        let request = TenantsCopySettingsRequest(tenantID: tenantID, templateTenantID: templateID, paths: paths)
        return try await required(tenants.copySettings(request, options: options).tenant)
    }

    /// Lists the refusals of the self-service switches of all tenants, by tenant, the newest first. An email or a phone
    /// number selects its refusals, a decision id the one refusal that a user quotes. `from` is inclusive, `to` is
    /// exclusive.
    public func listAllDenials(
        from: Timestamp? = nil, to: Timestamp? = nil, email: Text = .empty, phoneNumber: Text = .empty,
        decisionID: Text = .empty, pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<TenantDenial> {
        Listing { [tenants] token throws(Failure) in
            let page = try await tenants.listAllDenials(
                TenantsListAllDenialsRequest(
                    fromMicros: from?.microseconds ?? 0, toMicros: to?.microseconds ?? 0, pageSize: pageSize,
                    pageToken: token, email: email, phoneNumber: phoneNumber, decisionID: decisionID), options: options)
            return (page.denials, page.nextPageToken)
        }
    }
}
