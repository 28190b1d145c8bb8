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
    /// The provider's issuer, which a redirect may name. Empty if the provider has none, or the server does not tell.
    public let issuer: String
    /// Whether the redirect has to name the issuer, because the provider promises it (RFC 9207).
    public let isIssuerRequired: Bool

    /// Makes a request again from the values that were kept.
    public init(
        providerID: String, continueURI: String, url: String, state: String, nonce: String, codeVerifier: Secret,
        issuer: String = "", isIssuerRequired: Bool = false
    ) {
        self.providerID = providerID
        self.continueURI = continueURI
        self.url = url
        self.state = state
        self.nonce = nonce
        self.codeVerifier = codeVerifier
        self.issuer = issuer
        self.isIssuerRequired = isIssuerRequired
    }

    /// Makes a credential of the URL that the browser came back to. The credential signs in once.
    ///
    /// `redirect` is the whole URL, because it shows which provider sent the browser back: give each provider a
    /// `continueURI` of its own. `postedForm` is the body of a provider that answers by a form, such as Apple; then
    /// `redirect` is the URL that the form was posted to, and `state` and `code` are read from the form only.
    ///
    /// Throws invalidCredential with the reason MISSING_CODE or WRONG_STATE: the redirect answers another request,
    /// names another issuer, or none although it has to, or came to another URL than `continueURI`. Throws
    /// webContextCancelled where the user or the provider declined, and webSignInUserInteractionFailure for any other
    /// error of the provider.
    public func credential(
        fromRedirect redirect: String, postedForm: String? = nil
    ) throws(AuthError) -> AuthCredential {
        guard isContinueURI(redirect) else {
            throw AuthError(
                .wrongState,
                "The browser came back to another URL than the request's continue URI; pass the whole URL.")
        }
        let fields = postedForm.map { FormFields($0[...]) } ?? FormFields(ofLink: redirect)
        guard !state.isEmpty, fields.has("state", state) else {
            throw AuthError(
                .wrongState, "The redirect does not answer this request; begin again.")
        }
        // RFC 9207 §2.4: the answer of another provider, or its refusal.
        guard issuer.isEmpty || (fields["iss"] == nil && !isIssuerRequired) || fields.has("iss", issuer) else {
            throw AuthError(
                .wrongState, "The redirect is the answer of another provider.")
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

    /// Whether the browser came to the continue URI: the same bytes before the query, and every field of its query.
    ///
    /// A dishonest provider can send the browser on to another provider with this request's state. The code of the
    /// other provider then comes to the other provider's continue URI (RFC 9700 §4.4).
    private func isContinueURI(_ redirect: String) -> Bool {
        !continueURI.isEmpty && Self.place(of: redirect).elementsEqual(Self.place(of: continueURI))
            && FormFields(ofLink: redirect).contains(FormFields(ofLink: continueURI))
    }

    /// The bytes of a URL before its query and fragment. Browsers write an empty path behind a host as "/".
    private static func place(of url: String) -> [UInt8] {
        var place = Array(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        let slash = UInt8(ascii: "/")
        if place.count(where: { $0 == slash }) == 2, let colon = place.firstIndex(of: UInt8(ascii: ":")),
            place[(colon + 1)...].starts(with: [slash, slash])
        {
            place.append(slash)
        }
        return place
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
            state: response.sessionID.string, nonce: response.nonce.string, codeVerifier: response.codeVerifier,
            issuer: response.issuer.string, isIssuerRequired: response.issuerRequired)
    }
}
