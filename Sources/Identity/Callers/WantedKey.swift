public import Base
public import Messages

/// An API key that is to be made, as its maker wants it. `CallerDirectory.create` makes the key.
public struct WantedKey: Sendable {
    public var role: Role
    public var scope: Scope?
    public var displayName: Text
    public var trustsEndUserIP: Bool
    public var exportsPasswordHashes: Bool
    public var quotas: CallerQuotas?
    public var restrictions: KeyRestrictions

    public init(
        role: Role, scope: Scope?, displayName: Text, trustsEndUserIP: Bool = false,
        exportsPasswordHashes: Bool = false, quotas: CallerQuotas? = nil,
        restrictions: KeyRestrictions = KeyRestrictions()
    ) {
        self.role = role
        self.scope = scope
        self.displayName = displayName
        self.trustsEndUserIP = trustsEndUserIP
        self.exportsPasswordHashes = exportsPasswordHashes
        self.quotas = quotas
        self.restrictions = restrictions
    }
}
