import Base

/// An identity provider (OAuth 2.0 or OpenID Connect), and the credentials that it issues.
///
/// ```swift
/// let credential = OAuthProvider.credential(providerID: .apple, idToken: idToken, rawNonce: nonce)
/// try await auth.signIn(with: credential)
/// ```
public struct OAuthProvider: Sendable {
    /// The provider's id: "google.com", "apple.com", "oidc.<name>", ….
    public let providerID: String
    /// The scopes that `authorizationRequest` asks for beside the usual ones.
    public var scopes: [String] = []
    /// Parameters that `authorizationRequest` adds to the provider's URL, for example `prompt`.
    public var customParameters: [String: String] = [:]

    /// Names a provider by its id.
    public init(providerID: String) { self.providerID = providerID }

    /// Names a provider by its constant.
    public init(providerID: AuthProviderID) { self.init(providerID: providerID.rawValue) }

    /// Makes a credential of the tokens that the provider's own sign-in gave to the application.
    ///
    /// Give an OpenID Connect ID token, an OAuth 2.0 access token, or both. With both the server checks the ID token,
    /// because an ID token names its audience. `rawNonce` is the nonce whose SHA-256, in hexadecimal digits, the
    /// application sent to the provider, or which it sent as it is. Send the SHA-256: a thief of the ID token can read
    /// what was sent.
    public static func credential(
        providerID: String, idToken: String? = nil, rawNonce: String? = nil, accessToken: String? = nil
    ) -> AuthCredential {
        if idToken == nil, let accessToken {
            return AuthCredential(provider: providerID, kind: .accessToken(Secret(accessToken)))
        }
        return AuthCredential(provider: providerID, kind: .idToken(Secret(idToken ?? ""), rawNonce: rawNonce ?? ""))
    }

    /// Does the same for a provider's constant.
    public static func credential(
        providerID: AuthProviderID, idToken: String? = nil, rawNonce: String? = nil, accessToken: String? = nil
    ) -> AuthCredential {
        credential(providerID: providerID.rawValue, idToken: idToken, rawNonce: rawNonce, accessToken: accessToken)
    }

    /// Makes a credential of Sign in with Apple. Apple tells the user's name to the application once: set it with
    /// `User.createProfileChangeRequest`.
    public static func appleCredential(withIDToken idToken: String, rawNonce: String?) -> AuthCredential {
        credential(providerID: .apple, idToken: idToken, rawNonce: rawNonce)
    }

    /// Makes a credential of an authorization code, which the server exchanges at the provider (RFC 6749 §4.1, RFC
    /// 7636).
    ///
    /// `redirectURI`, `codeVerifier` and `rawNonce` are those of the application's own authorization request; empty or
    /// nil where it had none. For requests that the server makes see `authorizationRequest`.
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
