public import Base
public import Messages
import Rules

extension ProviderConfiguration {
    /// The issuer of the provider's user identifiers. Two identities can be the same person only if their issuers are
    /// equal.
    public var identityIssuer: Text { Self.identityIssuer(of: provider, known) }

    /// The `identityIssuer` of a stored configuration. Nil for an id that no provider can have.
    public static func identityIssuer(of provider: Provider) -> Text? {
        KnownProvider(provider.providerID).map { identityIssuer(of: provider, $0) }
    }

    /// | provider | issuer of its identities |
    /// |---|---|
    /// | with an `issuer` of its own | that, byte for byte |
    /// | Google, in either spelling, and every other known one | the known issuer |
    /// | Microsoft, one directory or all | the template: Microsoft gives no two users of an application one `sub` |
    /// | GitHub, Twitter | their provider id, or the origin of another `user_info` endpoint: GitHub Enterprise |
    /// | Facebook | its known issuer, or the origin of another `user_info` endpoint |
    private static func identityIssuer(of provider: Provider, _ known: KnownProvider) -> Text {
        let issuer = provider.issuer
        guard issuer.isEmpty || isSpelling(of: known, issuer) else { return issuer }
        let own = known.issuer.isEmpty ? provider.providerID : known.issuer
        let asked = provider.endpoints?.userInfo ?? .empty
        guard known.userInfoShape != .oidc, !asked.isEmpty else { return own }
        let origin = origin(of: asked)
        return origin == Self.origin(of: known.endpoints.userInfo) ? own : origin
    }

    /// Whether the issuer is that of a known provider, in any of its spellings.
    static func isSpelling(of known: KnownProvider, _ issuer: Text) -> Bool {
        if issuer == known.issuer || (!known.issuerAlias.isEmpty && issuer == known.issuerAlias) { return true }
        guard known.hasIssuerTemplate else { return false }
        let placeholder = [UInt8]("{tenantid}".utf8)
        guard let start = known.issuer.bytes.firstRange(of: placeholder) else { return false }
        let (prefix, suffix) = (known.issuer.bytes[..<start.lowerBound], known.issuer.bytes[start.upperBound...])
        guard issuer.byteCount > prefix.count + suffix.count, issuer.bytes.starts(with: prefix),
            issuer.bytes.reversed().starts(with: suffix.reversed())
        else { return false }
        return !issuer.bytes[prefix.count..<(issuer.byteCount - suffix.count)].contains(UInt8(ascii: "/"))
    }

    /// Scheme, host and port, in lower case.
    private static func origin(of url: Text) -> Text {
        let slashes = url.bytes.indices.filter {
            url.bytes[$0] == UInt8(ascii: "/") || url.bytes[$0] == UInt8(ascii: "?")
        }
        let end = slashes.first { $0 > 7 } ?? url.byteCount
        return Text(unchecked: url.bytes[..<end].lowercasedASCII)
    }
}
