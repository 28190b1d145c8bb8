public import Base
public import Messages
public import PosternClient

// MARK: - Ways to sign in

extension TenantAdmin {
    /// Adds an identity to a user. `identity` needs `providerID` and `rawID`.
    ///
    /// Throws USER_NOT_FOUND, PROVIDER_ALREADY_LINKED, FEDERATED_USER_ID_ALREADY_LINKED, TOO_MANY_PROVIDERS.
    @discardableResult
    public func linkProvider(
        _ identity: ProviderInfo, to uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersLinkRequest(tenantID: tenantID, uid: uid, provider: identity)
        return try await required(sendOnce(users.link, request, options).user)
    }

    /// Removes an identity from a user, even the last one. Throws USER_NOT_FOUND, NO_SUCH_PROVIDER.
    @discardableResult
    public func unlinkProvider(
        _ providerID: Text, from uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersUnlinkRequest(tenantID: tenantID, uid: uid, providerID: providerID)
        return try await required(sendOnce(users.unlink, request, options).user)
    }

    /// Returns what a sign-in with an identity would do, and why. With a `uid`: what linking the identity to that user
    /// would do.
    ///
    /// `claims` is a JSON object with the provider's claims: `sub`, `email`, …. Nothing changes.
    public func explainLink(
        providerID: Text, claims: Text, uid: Text = .empty, options: CallOptions = .init()
    ) async throws(Failure) -> UsersExplainLinkResponse {
        let request = UsersExplainLinkRequest(
            tenantID: tenantID, providerID: providerID, claimsJSON: claims.bytes, uid: uid)
        return try await users.explainLink(request, options: options)
    }
}

// MARK: - Imports

extension TenantAdmin {
    /// Finds the parameters with which a password has the hash of another system: a trial before `importUsers`.
    public func verifyHashSpec(
        _ spec: PasswordHashSpec, password: Secret, hash: Secret, salt: [UInt8] = [], options: CallOptions = .init()
    ) async throws(Failure) -> UsersVerifyHashSpecResponse {
        let request = UsersVerifyHashSpecRequest(
            tenantID: tenantID, password: password, passwordHash: hash, salt: salt, spec: spec)
        return try await users.verifyHashSpec(request, options: options)
    }
}

// MARK: - Tokens and links

extension TenantAdmin {
    /// Makes a custom token: a client signs in with it, once, as the user. The user need not exist yet.
    ///
    /// `claims` is a JSON object; empty: none. `lifetime` is at most one hour, the default. Throws CLAIMS_TOO_LARGE,
    /// INVALID_DURATION, and ALREADY_DONE when the answer got lost: ask again.
    public func createCustomToken(
        _ uid: Text, claims: Text = .empty, lifetime: Duration? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> Secret {
        let request = UsersCreateCustomTokenRequest(
            tenantID: tenantID, uid: uid, claimsJSON: claims.bytes, lifetimeSeconds: try wholeSeconds(lifetime))
        return try await sendOnce(users.createCustomToken, request, options).customToken
    }

    /// Makes the link, and its code, that a mail of this kind would hold, and mails nothing.
    ///
    /// `newEmail` is for `.verifyAndChangeEmail` only. Throws EMAIL_NOT_FOUND, EMAIL_EXISTS, OPERATION_NOT_ALLOWED for
    /// `.emailSignin` where sign-in by link is off, and ALREADY_DONE when the answer got lost: ask again.
    public func generateOobLink(
        _ requestType: OobRequestType, email: Text, newEmail: Text = .empty, continueURL: Text = .empty,
        options: CallOptions = .init()
    ) async throws(Failure) -> UsersGenerateOobLinkResponse {
        let request = UsersGenerateOobLinkRequest(
            tenantID: tenantID, requestType: requestType, email: email, newEmail: newEmail, continueURL: continueURL)
        return try await sendOnce(users.generateOobLink, request, options)
    }
}
