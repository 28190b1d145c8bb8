public import Base
public import Messages

/// A change of an identity provider, for `TenantAdmin.updateProvider`.
///
/// Nil leaves a field as it is. An empty value removes it; known providers, for example google.com, then have their
/// default. `endpoints` are replaced as a whole.
///
/// ```swift
/// try await tenant.updateProvider("google.com", ProviderChange { $0.enabled = false })
/// ```
public struct ProviderChange: Sendable {
    /// False refuses to sign in with the provider.
    public var enabled: Bool?
    /// The name for people, at most 256 bytes.
    public var displayName: Text?
    /// The id of the application at the provider: the audience of its ID tokens. At most 512 bytes.
    public var clientID: Text?
    /// The application's secret at the provider, at most 4,096 bytes. For apple.com with `apple`: the private key (PEM,
    /// PKCS#8).
    public var clientSecret: Secret?
    /// Further client ids whose ID tokens are accepted: the same application on other platforms. At most 20.
    public var additionalAudiences: [Text]?
    /// The issuer of the provider's ID tokens. Required for `oidc.*`. See `TenantAdmin.rebindProvider` before you
    /// change it.
    public var issuer: Text?
    /// The provider's URLs. Empty URLs come from the known provider or from the issuer's discovery document.
    public var endpoints: ProviderEndpoints?
    /// Accepts http:// URLs of the server's own machine, for development. Needs a project-admin.
    public var allowHTTPLoopback: Bool?
    /// Accepts a provider in the operator's own network. Needs a project-admin.
    public var allowPrivateAddresses: Bool?
    /// Accepts access tokens that cannot be shown to be issued to this application. Risky: the operator of another
    /// application could sign in as its users here.
    public var acceptUnboundAccessTokens: Bool?
    /// Accepts an ID token with a nonce when the application sends none. A nonce that the application sends must still
    /// match.
    public var acceptUnknownNonce: Bool?
    /// When the server believes the provider about an email.
    public var trust: ProviderTrust?
    /// The ids from which apple.com's client secrets are made.
    public var apple: AppleKey?

    /// Creates a change. The closure sets the fields.
    public init(_ fill: (inout ProviderChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<Provider> {
        var fields = MaskedFields<Provider>()
        fields.set(.enabled, \.enabled, enabled)
        fields.set(.displayName, \.displayName, displayName)
        fields.set(.clientID, \.clientID, clientID)
        fields.set(.clientSecret, \.clientSecret, clientSecret)
        fields.set(.additionalAudiences, \.additionalAudiences, additionalAudiences)
        fields.set(.issuer, \.issuer, issuer)
        fields.setMessage(.endpoints, \.endpoints, endpoints)
        fields.set(.allowHTTPLoopback, \.allowHTTPLoopback, allowHTTPLoopback)
        fields.set(.allowPrivateAddresses, \.allowPrivateAddresses, allowPrivateAddresses)
        fields.set(.acceptUnboundAccessTokens, \.acceptUnboundAccessTokens, acceptUnboundAccessTokens)
        fields.set(.acceptUnknownNonce, \.acceptUnknownNonce, acceptUnknownNonce)
        fields.setMessage(.trust, \.trust, trust)
        fields.setMessage(.apple, \.apple, apple)
        return fields
    }
}
