import Base
import JSON
import Outbound

/// The parts of a provider's discovery document that Postern uses (OpenID Connect Discovery 1.0 §3).
final class DiscoveryDocument: Sendable {
    let issuer: Text
    let jwks: Text
    /// The URL of the key set. Nil if the document has no URL that may be called.
    let jwksURL: HTTPURL?
    let authorization: Text
    let token: Text
    let userInfo: Text
    let introspection: Text
    /// Whether `client_secret_post` is among the ways in which a client may authenticate.
    let acceptsPostedSecrets: Bool

    /// Returns nil when the body is not a discovery document.
    init?(parsing body: [UInt8]) {
        guard let document = try? JSONValue(parsing: body), let issuer = document["issuer"]?.text else { return nil }
        self.issuer = issuer
        self.jwks = document["jwks_uri"]?.text ?? .empty
        self.jwksURL = HTTPURL(jwks)
        self.authorization = document["authorization_endpoint"]?.text ?? .empty
        self.token = document["token_endpoint"]?.text ?? .empty
        self.userInfo = document["userinfo_endpoint"]?.text ?? .empty
        self.introspection = document["introspection_endpoint"]?.text ?? .empty
        let methods = document["token_endpoint_auth_methods_supported"]?.array ?? []
        self.acceptsPostedSecrets = methods.contains("client_secret_post")
    }
}
