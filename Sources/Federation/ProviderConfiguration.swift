public import Base
public import Messages
public import Rules

/// One tenant's use of a provider, resolved: the configured values over the known values of the provider.
///
/// Immutable: it may be kept as long as the configuration stays the same.
public final class ProviderConfiguration: Sendable {
    public let tenantID: Text
    public let provider: Provider
    public let known: KnownProvider
    let hasClientSecret: Bool
    private let openClientSecret: @Sendable () throws -> Secret
    let policy: NetworkPolicy
    /// Empty for providers without ID tokens.
    let issuer: Text
    let endpoints: ProviderEndpoints
    let trust: TrustPolicy
    /// The URL of the discovery document: OpenID Connect Discovery 1.0 §4. Nil without an issuer to ask.
    let discoveryURL: Text?

    /// Nil for an id that cannot be configured. `openClientSecret` is called whenever the secret is needed, and the
    /// secret is not kept.
    public init?(
        tenantID: Text, provider: Provider, hasClientSecret: Bool,
        openClientSecret: @escaping @Sendable () throws -> Secret
    ) {
        guard let known = KnownProvider(provider.providerID) else { return nil }
        self.tenantID = tenantID
        self.provider = provider
        self.known = known
        self.hasClientSecret = hasClientSecret
        self.openClientSecret = openClientSecret
        self.policy = provider.networkPolicy
        self.issuer = provider.issuer.isEmpty ? known.issuer : provider.issuer
        let given = provider.endpoints ?? ProviderEndpoints()
        self.trust = TrustPolicy(
            provider.trust, known: known, isElsewhere: !provider.issuer.isEmpty || given != ProviderEndpoints())
        // Another issuer has its own keys and endpoints: those of the known issuer must not be mixed in.
        let defaults = provider.issuer.isEmpty ? known.endpoints : ProviderEndpoints()
        self.endpoints = Self.merge(given, over: defaults)
        self.discoveryURL = endpoints.discovery.isEmpty ? Self.discoveryURL(of: issuer) : endpoints.discovery
    }

    /// The client secret; empty if there is none. Throws NO_CLIENT_SECRET for a secret that cannot be opened and has to
    /// be set again.
    var clientSecret: Secret {
        get throws(FederationError) {
            guard hasClientSecret else { return .empty }
            guard let secret = try? openClientSecret() else { throw .misconfigured(.noClientSecret) }
            return secret
        }
    }

    /// The audiences whose ID tokens are accepted.
    var audiences: [Text] { [provider.clientID] + provider.additionalAudiences }

    /// The URL of an endpoint. Throws for a URL that may not be called.
    func url(_ text: Text) throws(FederationError) -> HTTPURL {
        guard let url = HTTPURL(text), !url.isPlaintext || policy.allowsHTTPToLoopback else {
            throw .misconfigured(.badEndpoint)
        }
        return url
    }

    private static func discoveryURL(of issuer: Text) -> Text? {
        guard !issuer.isEmpty, !issuer.bytes.contains(UInt8(ascii: "{")) else { return nil }
        let base = issuer.bytes.last == UInt8(ascii: "/") ? Array(issuer.bytes.dropLast()) : issuer.bytes
        return Text(unchecked: base + Array("/.well-known/openid-configuration".utf8))
    }

    private static func merge(_ given: ProviderEndpoints, over defaults: ProviderEndpoints) -> ProviderEndpoints {
        func one(_ path: KeyPath<ProviderEndpoints, Text>) -> Text {
            given[keyPath: path].isEmpty ? defaults[keyPath: path] : given[keyPath: path]
        }
        return ProviderEndpoints(
            discovery: one(\.discovery), jwks: one(\.jwks), token: one(\.token), userInfo: one(\.userInfo),
            tokenCheck: one(\.tokenCheck), authorization: one(\.authorization))
    }
}
