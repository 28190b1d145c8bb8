public import Base
import Messages
import PosternClient

/// A sign-in in a browser that was begun: where to send the browser, and what to keep until it comes back.
///
/// A back end keeps the values in the browser's own session: whoever has them and the redirect can sign in.
public struct OAuthAuthorizationRequest: Sendable {
    public let providerID: String
    /// Where the provider sends the browser back.
    public let continueURI: String
    /// Where the browser goes.
    public let url: String
    /// What the browser must bring back: then it is the one that was sent.
    public let state: String
    /// Empty for a provider that puts none into ID tokens.
    public let nonce: String
    /// RFC 7636; empty for a provider that takes none.
    public let codeVerifier: Secret

    /// From what was kept.
    public init(
        providerID: String, continueURI: String, url: String, state: String, nonce: String, codeVerifier: Secret
    ) {
        self.providerID = providerID
        self.continueURI = continueURI
        self.url = url
        self.state = state
        self.nonce = nonce
        self.codeVerifier = codeVerifier
    }

    /// The credential out of the URL that the browser came back to, or of the form that it posted (Apple). Good once.
    ///
    /// Throws invalidCredential (WRONG_STATE: it answers another request, MISSING_CODE), webContextCancelled where the
    /// user or the provider declined, webSignInUserInteractionFailure for what else the provider says.
    public func credential(fromRedirect redirect: String) throws(AuthError) -> AuthCredential {
        let fields =
            redirect.utf8.contains(UInt8(ascii: "?")) ? FormFields(ofLink: redirect) : FormFields(redirect[...])
        guard !state.isEmpty, fields.has("state", state) else {
            throw AuthError(
                .invalidCredential, reason: "WRONG_STATE", "The redirect does not answer this request; begin again.")
        }
        if let word = fields["error"] {
            let description = fields["error_description"].map { ": \($0)" } ?? ""
            throw AuthError(
                fields.has("error", "access_denied") ? .webContextCancelled : .webSignInUserInteractionFailure,
                reason: "AUTHORIZATION_REFUSED", "The provider said \(word)\(description)")
        }
        guard let code = fields["code"], !code.isEmpty else {
            throw AuthError(.invalidCredential, reason: "MISSING_CODE", "The redirect has no code.")
        }
        return AuthCredential(
            provider: providerID,
            kind: .authorizationCode(
                Secret(code), redirectURI: continueURI, codeVerifier: codeVerifier, rawNonce: nonce))
    }
}

extension OAuthProvider {
    /// The same with this provider's `scopes` and `customParameters`.
    public func authorizationRequest(continueURI: String, auth: Auth) async throws -> OAuthAuthorizationRequest {
        try await Self.authorizationRequest(
            providerID: providerID, continueURI: continueURI, scopes: scopes, customParameters: customParameters,
            auth: auth)
    }

    /// Begins a sign-in in a browser, with state, nonce and PKCE (`Accounts.CreateAuthUri`).
    ///
    /// `continueURI` as it is registered at the provider: https, http to this machine, or an application's own scheme.
    /// `scopes` beyond the usual ones. `customParameters` go to the provider: `prompt`, `login_hint`, …
    public static func authorizationRequest(
        providerID: String, continueURI: String, scopes: [String] = [], customParameters: [String: String] = [:],
        auth: Auth
    ) async throws -> OAuthAuthorizationRequest {
        let backend = auth.backend
        var request = AccountsCreateAuthUriRequest(
            tenantID: backend.tenantID, providerID: try backend.text(providerID, .invalidProviderID),
            continueURI: try backend.text(continueURI, .invalidContinueURI))
        for scope in scopes { request.scopes.append(try backend.text(scope)) }
        for (name, value) in customParameters.sorted(by: { $0.key < $1.key }) {
            request.customParameters.append(
                AuthUriParameter(name: try backend.text(name), value: try backend.text(value)))
        }
        let response = try await cancellable { [request] () async throws(AuthError) in
            try await backend.call { try await backend.accounts.createAuthUri(request) }
        }
        guard !response.authURI.isEmpty, !response.sessionID.isEmpty else {
            throw AuthError.malformedAnswer("auth_uri")
        }
        return OAuthAuthorizationRequest(
            providerID: providerID, continueURI: continueURI, url: response.authURI.string,
            state: response.sessionID.string, nonce: response.nonce.string, codeVerifier: response.codeVerifier)
    }
}
