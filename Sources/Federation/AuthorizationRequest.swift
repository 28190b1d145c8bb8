public import Base
import Crypto
import Messages
import Outbound
import Rules

/// A sign-in at a provider in a browser (RFC 6749 §4.1.1, OpenID Connect Core 1.0 §3.1.2.1): the URL that the browser
/// opens, and the values that its sender keeps until the browser comes back.
public struct AuthorizationRequest: Sendable {
    public let uri: Text
    /// A random value that comes back with the code. It shows that the same browser came back (RFC 6749 §10.12).
    public let state: Text
    /// Ties the ID token to this request. Empty for a provider that puts no nonce into ID tokens.
    public let nonce: Text
    /// Ties the code to this request (RFC 7636). Empty for a provider that takes no verifier.
    public let verifier: Secret
    /// The `iss` that the answer may carry (RFC 9207). Empty if the provider has no issuer, or one for each directory.
    public let issuer: Text
    /// Whether the provider promises that `iss`, so that an answer without it is another provider's (RFC 9207 §2.4).
    /// Known only if the discovery document was read.
    public let isIssuerRequired: Bool

    /// The length of the state, the nonce and the verifier, each 43 characters of base64url.
    private static let secretByteCount = 32

    /// `scopes` are those beyond the provider's usual ones. `parameters` must not hold any that are set here.
    init(
        at endpoint: HTTPURL, _ configuration: ProviderConfiguration, redirectURI: Text, scopes: [Text],
        parameters: [(name: Text, value: Text)], namesIssuer: Bool, random: RandomSource
    ) {
        let style = configuration.known.authorization
        let allScopes = style.scopes + scopes.filter { !style.scopes.contains($0) }
        func secret() -> Text { Text(unchecked: Base64.url.encode(random.bytes(Self.secretByteCount))) }
        state = secret()
        nonce = style.hasNonce && allScopes.contains("openid") ? secret() : .empty
        let verifier = style.hasPKCE ? secret() : .empty
        self.verifier = Secret(verifier.bytes)
        issuer = configuration.issuer.bytes.contains(UInt8(ascii: "{")) ? .empty : configuration.issuer
        isIssuerRequired = namesIssuer && !issuer.isEmpty

        var query: [(name: Text, value: Text)] = [
            ("response_type", "code"), ("client_id", configuration.provider.clientID), ("redirect_uri", redirectURI),
            ("scope", Text(unchecked: Array(allScopes.map(\.bytes).joined(separator: [0x20])))), ("state", state),
        ]
        if !nonce.isEmpty { query.append(("nonce", nonce)) }
        if !verifier.isEmpty {
            query.append(("code_challenge", Text(unchecked: Base64.url.encode(Digest.sha256(verifier.bytes)))))
            query.append(("code_challenge_method", "S256"))
        }
        query += style.parameters + parameters
        var uri = endpoint.text.bytes
        var separator = uri.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
        for (name, value) in query {
            uri.append(separator)
            uri += PercentEncoding.encode(name) + [UInt8(ascii: "=")] + PercentEncoding.encode(value)
            separator = UInt8(ascii: "&")
        }
        self.uri = Text(unchecked: uri)
    }
}

extension ProviderClient {
    /// A new request for a code. Throws `FederationError`, `CancellationError`, and the `Failure` of a full or closing
    /// pool if the discovery document has to be fetched.
    public func authorizationRequest(
        _ configuration: ProviderConfiguration, redirectURI: Text, scopes: [Text],
        parameters: [(name: Text, value: Text)], now: Timestamp, random: RandomSource
    ) async throws -> AuthorizationRequest {
        var location = configuration.endpoints.authorization
        var namesIssuer = false
        if location.isEmpty {
            let document = try await metadata.document(of: configuration, now: now)
            (location, namesIssuer) = (document.authorization, document.namesIssuerInRedirects)
        }
        guard !location.isEmpty else { throw FederationError.misconfigured(.noAuthorizationEndpoint) }
        return AuthorizationRequest(
            at: try configuration.url(location), configuration, redirectURI: redirectURI, scopes: scopes,
            parameters: parameters, namesIssuer: namesIssuer, random: random)
    }
}
