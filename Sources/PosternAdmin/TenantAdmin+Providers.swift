public import Base
public import Messages
public import PosternClient

extension TenantAdmin {
    /// Adds an identity provider. `providerID` and `clientID` are required. Users can sign in with it at once, unless
    /// `disabled`.
    ///
    /// Throws PROVIDER_ID_EXISTS, TOO_MANY_PROVIDERS, and a reason that begins with INVALID_ for a wrong field.
    @discardableResult
    public func createProvider(
        _ provider: Provider, disabled: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> Provider {
        let request = ProvidersCreateRequest(tenantID: tenantID, provider: provider, disabled: disabled)
        return try await required(sendOnce(providers.create, request, options).provider)
    }

    /// Returns an identity provider, without its secret. Throws PROVIDER_NOT_FOUND.
    public func getProvider(_ providerID: Text, options: CallOptions = .init()) async throws(Failure) -> Provider {
        let request = ProvidersGetRequest(tenantID: tenantID, providerID: providerID)
        return try await required(providers.get(request, options: options).provider)
    }

    /// Lists the tenant's identity providers, without their secrets.
    public func listProviders(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<Provider> {
        Listing { [providers, tenantID] token throws(Failure) in
            let page = try await providers.list(
                ProvidersListRequest(tenantID: tenantID, pageSize: pageSize, pageToken: token), options: options)
            return (page.providers, page.nextPageToken)
        }
    }

    /// Changes an identity provider. The change holds from the next request on.
    ///
    /// Throws PROVIDER_NOT_FOUND, and CLIENT_SECRET_REQUIRED when the secret would go to another place, or `apple` is
    /// set or removed: give the secret again.
    @discardableResult
    public func updateProvider(
        _ providerID: Text, _ change: ProviderChange, options: CallOptions = .init()
    ) async throws(Failure) -> Provider {
        var fields = change.fields
        fields.message.providerID = providerID
        let request = ProvidersUpdateRequest(tenantID: tenantID, provider: fields.message, updateMask: fields.mask)
        return try await required(providers.update(request, options: options).provider)
    }

    /// Removes an identity provider. Users keep their identities, and nobody can sign in with them. Throws
    /// PROVIDER_NOT_FOUND.
    public func deleteProvider(_ providerID: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = ProvidersDeleteRequest(tenantID: tenantID, providerID: providerID)
        _ = try await sendOnce(providers.delete, request, options)
    }

    /// Tells the server that the provider moved: identities that `issuer` proved count as identities of the provider's
    /// present issuer.
    ///
    /// Returns the issuers whose identities count now. Throws INVALID_ISSUER, TOO_MANY_REBINDINGS.
    @discardableResult
    public func rebindProvider(
        _ providerID: Text, from issuer: Text, options: CallOptions = .init()
    ) async throws(Failure) -> [Text] {
        let request = ProvidersRebindRequest(tenantID: tenantID, providerID: providerID, fromIssuer: issuer)
        return try await providers.rebind(request, options: options).issuers
    }

    /// Asks the provider everything that a sign-in would ask. A failed step is in the report, not thrown.
    public func testProvider(
        _ providerID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ProvidersTestResponse {
        try await providers.test(ProvidersTestRequest(tenantID: tenantID, providerID: providerID), options: options)
    }

    private var providers: ProvidersClient { ProvidersClient(channel: channel) }
}
