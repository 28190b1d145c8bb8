public import Base
public import Messages
public import PosternClient

extension TenantAdmin {
    /// `providerID` and `clientID` are required. It can be used at once unless `disabled`. PROVIDER_ID_EXISTS,
    /// TOO_MANY_PROVIDERS, INVALID_….
    @discardableResult
    public func createProvider(
        _ provider: Provider, disabled: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> Provider {
        let request = ProvidersCreateRequest(tenantID: tenantID, provider: provider, disabled: disabled)
        return try await part(keyed(providers.create, request, options).provider)
    }

    /// PROVIDER_NOT_FOUND.
    public func getProvider(_ providerID: Text, options: CallOptions = .init()) async throws(Failure) -> Provider {
        let request = ProvidersGetRequest(tenantID: tenantID, providerID: providerID)
        return try await part(providers.get(request, options: options).provider)
    }

    public func listProviders(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<Provider> {
        Listing { [providers, tenantID] token throws(Failure) in
            let page = try await providers.list(
                ProvidersListRequest(tenantID: tenantID, pageSize: pageSize, pageToken: token), options: options)
            return (page.providers, page.nextPageToken)
        }
    }

    /// CLIENT_SECRET_REQUIRED: what changes where the secret is sent must give it again.
    @discardableResult
    public func updateProvider(
        _ providerID: Text, _ change: ProviderChange, options: CallOptions = .init()
    ) async throws(Failure) -> Provider {
        var fields = change.fields
        fields.message.providerID = providerID
        let request = ProvidersUpdateRequest(tenantID: tenantID, provider: fields.message, updateMask: fields.mask)
        return try await part(providers.update(request, options: options).provider)
    }

    /// Users keep the identities they have; nobody can sign in with them any more.
    public func deleteProvider(_ providerID: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = ProvidersDeleteRequest(tenantID: tenantID, providerID: providerID)
        _ = try await keyed(providers.delete, request, options)
    }

    /// Counts identities that `issuer` proved as those of the provider's present issuer: it is the same provider, and
    /// has moved. Returns whose identities count now. INVALID_ISSUER, TOO_MANY_REBINDINGS.
    @discardableResult
    public func rebindProvider(
        _ providerID: Text, from issuer: Text, options: CallOptions = .init()
    ) async throws(Failure) -> [Text] {
        let request = ProvidersRebindRequest(tenantID: tenantID, providerID: providerID, fromIssuer: issuer)
        return try await providers.rebind(request, options: options).issuers
    }

    /// Asks the provider what signing in would ask it. A failed step is in the report, not thrown.
    public func testProvider(
        _ providerID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ProvidersTestResponse {
        try await providers.test(ProvidersTestRequest(tenantID: tenantID, providerID: providerID), options: options)
    }

    private var providers: ProvidersClient { ProvidersClient(channel: channel) }
}
