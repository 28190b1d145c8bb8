public import Base
import Messages
import PosternClient

/// A sign-in in a browser that has begun: the URL to open, and the values to keep until the browser comes back.
///
/// A back end keeps the values in the browser's own session: whoever holds the values and the redirect can sign in.
///
/// ```swift
/// let provider = OAuthProvider(providerID: .google)
/// let request = try await provider.authorizationRequest(continueURI: "https://shop.example/signed-in", auth: auth)
/// let redirect = try await openBrowser(request.url)
/// try await auth.signIn(with: request.credential(fromRedirect: redirect))
/// ```
public struct OAuthAuthorizationRequest: Sendable {
    /// The provider that the browser goes to.
    public let providerID: String
    /// The URL that the provider sends the browser back to.
    public let continueURI: String
    /// The provider's page: open it in a browser.
    public let url: String
    /// A random value that the browser must bring back, which shows that it is the browser that was sent.
    public let state: String
    /// A random value that the provider puts into the ID token. Empty for a provider that has none.
    public let nonce: String
    /// The verifier of RFC 7636 (PKCE). Empty for a provider that does not support it.
    public let codeVerifier: Secret

    /// Makes a request again from the values that were kept.
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

    /// Makes a credential of the URL that the browser came back to, or of the form that it posted (Apple). The
    /// credential signs in once.
    ///
    /// Throws invalidCredential with the reason WRONG_STATE (the redirect answers another request) or MISSING_CODE,
    /// webContextCancelled where the user or the provider declined, and webSignInUserInteractionFailure for any other
    /// error of the provider.
    public func credential(fromRedirect redirect: String) throws(AuthError) -> AuthCredential {
        let fields =
            redirect.utf8.contains(UInt8(ascii: "?")) ? FormFields(ofLink: redirect) : FormFields(redirect[...])
        guard !state.isEmpty, fields.has("state", state) else {
            throw AuthError(
                .wrongState, "The redirect does not answer this request; begin again.")
        }
        if let word = fields["error"] {
            let description = fields["error_description"].map { ": \($0)" } ?? ""
            throw AuthError(
                .authorizationRefused, as: fields.has("error", "access_denied") ? .webContextCancelled : nil,
                "The provider said \(word)\(description)")
        }
        guard let code = fields["code"], !code.isEmpty else {
            throw AuthError(.missingCode, "The redirect has no code.")
        }
        return AuthCredential(
            provider: providerID,
            kind: .authorizationCode(
                Secret(code), redirectURI: continueURI, codeVerifier: codeVerifier, rawNonce: nonce))
    }
}

extension OAuthProvider {
    /// Begins a sign-in in a browser with this provider's `scopes` and `customParameters`. See the static function of
    /// the same name.
    public func authorizationRequest(continueURI: String, auth: Auth) async throws -> OAuthAuthorizationRequest {
        try await Self.authorizationRequest(
            providerID: providerID, continueURI: continueURI, scopes: scopes, customParameters: customParameters,
            auth: auth)
    }

    /// Begins a sign-in in a browser, with state, nonce and PKCE (`Accounts.CreateAuthUri`).
    ///
    /// `continueURI` is registered at the provider: an https URL, an http URL of this machine, or a URL of the
    /// application's own scheme. `scopes` are asked for beside the usual ones. `customParameters` go to the provider,
    /// for example `prompt` or `login_hint`. Throws invalidProviderID, invalidContinueURI, unauthorizedDomain.
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
