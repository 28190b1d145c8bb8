public import Base
public import Messages

/// A masked change of a provider's configuration. Pure; what comes out is for `ProviderRules` to judge.
public struct ProviderChange: Sendable {
    let wanted: Provider
    let paths: [Text]

    var changesSecret: Bool { paths.contains("client_secret") }

    /// INVALID_UPDATE_MASK for an empty mask and for an unknown or repeated path.
    public init(_ wanted: Provider, paths: [Text]) throws(Failure) {
        guard !paths.isEmpty else {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "must name the fields to change")
        }
        guard Set(paths).count == paths.count else {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "names a field twice")
        }
        self.wanted = wanted
        self.paths = paths
        var scratch = Provider()
        try apply(to: &scratch)
    }

    func apply(to provider: inout Provider) throws(Failure) {
        for path in paths { try apply(path, to: &provider) }
    }

    /// For the event log.
    var fieldNames: Text { Text(unchecked: Array(paths.map(\.bytes).joined(separator: [UInt8(ascii: ",")]))) }

    private func apply(_ path: Text, to provider: inout Provider) throws(Failure) {
        switch path {
        case "enabled": provider.enabled = wanted.enabled
        case "display_name": provider.displayName = wanted.displayName
        case "client_id": provider.clientID = wanted.clientID
        case "client_secret": provider.hasClientSecret = !wanted.clientSecret.isEmpty
        case "additional_audiences": provider.additionalAudiences = wanted.additionalAudiences
        case "issuer": provider.issuer = wanted.issuer
        case "endpoints": provider.endpoints = wanted.endpoints
        case "endpoints.discovery": set(\.discovery, in: &provider)
        case "endpoints.jwks": set(\.jwks, in: &provider)
        case "endpoints.token": set(\.token, in: &provider)
        case "endpoints.user_info": set(\.userInfo, in: &provider)
        case "endpoints.authorization": set(\.authorization, in: &provider)
        case "endpoints.token_check": set(\.tokenCheck, in: &provider)
        case "allow_http_loopback": provider.allowHTTPLoopback = wanted.allowHTTPLoopback
        case "allow_private_addresses": provider.allowPrivateAddresses = wanted.allowPrivateAddresses
        case "accept_unbound_access_tokens": provider.acceptUnboundAccessTokens = wanted.acceptUnboundAccessTokens
        case "accept_unknown_nonce": provider.acceptUnknownNonce = wanted.acceptUnknownNonce
        case "trust": provider.trust = wanted.trust
        case "apple": provider.apple = wanted.apple
        default:
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "\"\(path)\" is no field that can be changed")
        }
    }

    private func set(_ field: WritableKeyPath<ProviderEndpoints, Text>, in provider: inout Provider) {
        var endpoints = provider.endpoints ?? ProviderEndpoints()
        endpoints[keyPath: field] = wanted.endpoints?[keyPath: field] ?? .empty
        provider.endpoints = endpoints
    }
}
