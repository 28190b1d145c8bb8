public import Base
public import Messages

/// What `updateProvider` changes: nil leaves a field as it is, an empty value removes it; without it the known
/// provider's own counts. The fields of `Provider` explain them. `endpoints` are replaced as a whole.
///
/// `ProviderChange { $0.enabled = false }`
public struct ProviderChange: Sendable {
    public var enabled: Bool?
    public var displayName: Text?
    public var clientID: Text?
    public var clientSecret: Secret?
    public var additionalAudiences: [Text]?
    public var issuer: Text?
    public var endpoints: ProviderEndpoints?
    public var allowHTTPLoopback: Bool?
    public var allowPrivateAddresses: Bool?
    public var acceptUnboundAccessTokens: Bool?
    public var acceptUnknownNonce: Bool?
    public var trust: ProviderTrust?
    public var apple: AppleKey?

    public init(_ fill: (inout ProviderChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<Provider> {
        var fields = MaskedFields<Provider>()
        fields.set("enabled", \.enabled, enabled)
        fields.set("display_name", \.displayName, displayName)
        fields.set("client_id", \.clientID, clientID)
        fields.set("client_secret", \.clientSecret, clientSecret)
        fields.set("additional_audiences", \.additionalAudiences, additionalAudiences)
        fields.set("issuer", \.issuer, issuer)
        fields.setMessage("endpoints", \.endpoints, endpoints)
        fields.set("allow_http_loopback", \.allowHTTPLoopback, allowHTTPLoopback)
        fields.set("allow_private_addresses", \.allowPrivateAddresses, allowPrivateAddresses)
        fields.set("accept_unbound_access_tokens", \.acceptUnboundAccessTokens, acceptUnboundAccessTokens)
        fields.set("accept_unknown_nonce", \.acceptUnknownNonce, acceptUnknownNonce)
        fields.setMessage("trust", \.trust, trust)
        fields.setMessage("apple", \.apple, apple)
        return fields
    }
}
