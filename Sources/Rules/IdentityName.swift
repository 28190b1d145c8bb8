public import Base
public import Messages

/// An identity's name in the unique index. No two accounts of a tenant have the same name.
public struct IdentityName: Hashable, Sendable {
    public var providerID: Text
    /// Empty for identities that name no issuer: those from before issuers were kept, and those that an admin linked or
    /// imported while the provider was not configured.
    public var issuer: Text
    public var rawID: Text

    public init(_ entry: ProviderInfo) {
        self.providerID = entry.providerID
        self.issuer = entry.issuer
        self.rawID = entry.rawID
    }

    public func named(_ issuer: Text) -> IdentityName {
        var name = self
        name.issuer = issuer
        return name
    }
}

extension StoredIdentityIssuers {
    public static let rebindingsMax = 8

    /// The issuers whose identities count as those of `issuer`, `issuer` itself first. Rebindings may form chains and
    /// circles.
    public func counting(as issuer: Text) -> [Text] {
        var issuers = [issuer]
        var next = 0
        while next < issuers.count {
            for rebinding in rebindings where rebinding.toIssuer == issuers[next] {
                if !issuers.contains(rebinding.fromIssuer) { issuers.append(rebinding.fromIssuer) }
            }
            next += 1
        }
        return issuers
    }

    /// Whether identities that name no issuer are among those of `issuers`.
    public func countsUnnamed(as issuers: [Text]) -> Bool { unnamedIssuer.isEmpty || issuers.contains(unnamedIssuer) }
}
