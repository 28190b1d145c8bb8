import Base
import JSON
import Outbound

/// The parts of a provider's discovery document that Postern uses (OpenID Connect Discovery 1.0 §3).
final class DiscoveryDocument: Sendable {
    let issuer: Text
    /// Whether the document says where the keys are.
    let namesKeys: Bool
    /// The URL of the key set. Nil if the document has no URL that may be called.
    let jwksURL: HTTPURL?
    let authorization: Text
    let token: Text
    let userInfo: Text
    let introspection: Text
    /// Whether the token endpoint takes the client secret in the form (`client_secret_post`).
    let acceptsPostedSecrets: Bool
    /// The same for the introspection endpoint (RFC 8414 §2). Where the document does not say it, the introspection
    /// endpoint is taken to accept what the token endpoint accepts.
    let acceptsPostedSecretsForIntrospection: Bool

    /// Whether every redirect of the provider names its issuer: RFC 9207 §3.
    let namesIssuerInRedirects: Bool

    /// Returns nil when the body is not a discovery document.
    ///
    /// The document is kept, so an issuer that is longer than any URL is refused, and a URL that is too long to be
    /// asked is left out.
    init?(parsing body: [UInt8]) {
        guard let document = try? JSONValue(parsing: body), let issuer = document["issuer"]?.text,
            issuer.byteCount <= HTTPURL.byteCountMax
        else { return nil }
        func url(_ name: Text) -> Text {
            guard let text = document[name]?.text, text.byteCount <= HTTPURL.byteCountMax else { return .empty }
            return text
        }
        func acceptsPosted(_ name: Text) -> Bool? { document[name]?.array?.contains("client_secret_post") }
        self.issuer = issuer
        self.namesKeys = document["jwks_uri"]?.text?.isEmpty == false
        self.jwksURL = HTTPURL(url("jwks_uri"))
        self.authorization = url("authorization_endpoint")
        self.token = url("token_endpoint")
        self.userInfo = url("userinfo_endpoint")
        self.introspection = url("introspection_endpoint")
        let acceptsPostedSecrets = acceptsPosted("token_endpoint_auth_methods_supported") ?? false
        self.acceptsPostedSecrets = acceptsPostedSecrets
        self.acceptsPostedSecretsForIntrospection =
            acceptsPosted("introspection_endpoint_auth_methods_supported") ?? acceptsPostedSecrets
        self.namesIssuerInRedirects = document["authorization_response_iss_parameter_supported"] == true
    }
}
