public import Base
public import Messages
public import PosternClient

// MARK: - Ways to sign in

extension TenantAdmin {
    /// `identity` needs `providerID` and `rawID`. PROVIDER_ALREADY_LINKED, FEDERATED_USER_ID_ALREADY_LINKED,
    /// TOO_MANY_PROVIDERS.
    @discardableResult
    public func linkProvider(
        _ identity: ProviderInfo, to uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersLinkRequest(tenantID: tenantID, uid: uid, provider: identity)
        return try await part(keyed(users.link, request, options).user)
    }

    /// The last one too. NO_SUCH_PROVIDER.
    @discardableResult
    public func unlinkProvider(
        _ providerID: Text, from uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersUnlinkRequest(tenantID: tenantID, uid: uid, providerID: providerID)
        return try await part(keyed(users.unlink, request, options).user)
    }

    /// What a sign-in would do with this identity, and why; with a `uid`, linking it to that user. `claims` is what the
    /// provider would say: a JSON object with `sub`, `email`, ….
    public func explainLink(
        providerID: Text, claims: Text, uid: Text = .empty, options: CallOptions = .init()
    ) async throws(Failure) -> UsersExplainLinkResponse {
        let request = UsersExplainLinkRequest(
            tenantID: tenantID, providerID: providerID, claimsJSON: claims.bytes, uid: uid)
        return try await users.explainLink(request, options: options)
    }
}

// MARK: - Tokens and links

extension TenantAdmin {
    /// A client signs in with it as the user, who need not exist yet. It counts once. `claims`: a JSON object; empty:
    /// none. `lifetime`: up to an hour, which is the default. ALREADY_DONE: the answer got lost; ask for another.
    public func createCustomToken(
        _ uid: Text, claims: Text = .empty, lifetime: Duration? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> Secret {
        let request = UsersCreateCustomTokenRequest(
            tenantID: tenantID, uid: uid, claimsJSON: claims.bytes, lifetimeSeconds: try wholeSeconds(lifetime))
        return try await keyed(users.createCustomToken, request, options).customToken
    }

    /// The link (and its code) that a mail of this kind would hold. `newEmail` is for `.verifyAndChangeEmail`.
    /// EMAIL_NOT_FOUND, EMAIL_EXISTS; ALREADY_DONE: the answer got lost; ask for another.
    public func generateOobLink(
        _ requestType: OobRequestType, email: Text, newEmail: Text = .empty, continueURL: Text = .empty,
        options: CallOptions = .init()
    ) async throws(Failure) -> UsersGenerateOobLinkResponse {
        let request = UsersGenerateOobLinkRequest(
            tenantID: tenantID, requestType: requestType, email: email, newEmail: newEmail, continueURL: continueURL)
        return try await keyed(users.generateOobLink, request, options)
    }
}
