import Base

/// Credentials of an identity provider: OAuth 2.0 or OpenID Connect.
public struct OAuthProvider: Sendable {
    /// "google.com", "apple.com", "oidc.<name>", …
    public let providerID: String
    /// Asked for beyond the usual ones, by `authorizationRequest`.
    public var scopes: [String] = []
    /// For the provider: `prompt`, `login_hint`, …; by `authorizationRequest`.
    // Not bytes: the application's own constants, sorted and sent as they are.
    public var customParameters: [String: String] = [:]

    public init(providerID: String) { self.providerID = providerID }

    public init(providerID: AuthProviderID) { self.init(providerID: providerID.rawValue) }

    /// What a provider's own sign-in handed to the application: an OpenID Connect ID token, or an OAuth 2.0 access
    /// token, or both; then the ID token counts, because it says whom it was made for.
    ///
    /// `rawNonce` is what the application sent to the provider; then the ID token must carry it or its SHA-256.
    public static func credential(
        providerID: String, idToken: String? = nil, rawNonce: String? = nil, accessToken: String? = nil
    ) -> AuthCredential {
        if idToken == nil, let accessToken {
            return AuthCredential(provider: providerID, kind: .accessToken(Secret(accessToken)))
        }
        return AuthCredential(provider: providerID, kind: .idToken(Secret(idToken ?? ""), rawNonce: rawNonce ?? ""))
    }

    public static func credential(
        providerID: AuthProviderID, idToken: String? = nil, rawNonce: String? = nil, accessToken: String? = nil
    ) -> AuthCredential {
        credential(providerID: providerID.rawValue, idToken: idToken, rawNonce: rawNonce, accessToken: accessToken)
    }

    /// Of Sign in with Apple. The name that Apple tells an application once is set by a profile change request.
    public static func appleCredential(withIDToken idToken: String, rawNonce: String?) -> AuthCredential {
        credential(providerID: .apple, idToken: idToken, rawNonce: rawNonce)
    }

    /// An authorization code, which the server exchanges at the provider (RFC 6749 §4.1, with RFC 7636's verifier).
    ///
    /// `redirectURI`, `codeVerifier` and `rawNonce` as the application's own authorization request had them; empty or
    /// nil where it had none. For one that the server makes see `authorizationRequest`.
    public static func credential(
        providerID: String, authorizationCode: String, redirectURI: String, codeVerifier: String,
        rawNonce: String? = nil
    ) -> AuthCredential {
        AuthCredential(
            provider: providerID,
            kind: .authorizationCode(
                Secret(authorizationCode), redirectURI: redirectURI, codeVerifier: Secret(codeVerifier),
                rawNonce: rawNonce ?? ""))
    }
}
