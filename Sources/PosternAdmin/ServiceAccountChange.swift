public import Base
public import Messages

/// A change of a service account, for `ProjectAdmin.updateServiceAccount`. Nil leaves a field as it is.
///
/// ```swift
/// try await project.updateServiceAccount("billing", ServiceAccountChange { $0.disabled = true })
/// ```
public struct ServiceAccountChange: Sendable {
    /// The name for people, at most 256 bytes.
    public var displayName: Text?
    /// The role of the account's calls. `.unspecified`: the account may call nothing.
    public var role: Role?
    /// The tenants that the account's calls and custom tokens may be about.
    public var scope: Scope?
    /// Lets the account sign custom tokens: its keys can then sign in as any user of the tenants in its scope.
    public var customTokens: Bool?
    /// Lets the account's calls report the end user's IP address.
    public var trustedEndUserIP: Bool?
    /// True: everything that the account signed or signs is refused.
    public var disabled: Bool?
    /// The quotas of the account's calls.
    public var quotas: CallerQuotas?

    /// Creates a change. The closure sets the fields.
    public init(_ fill: (inout ServiceAccountChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<ProjectUpdateServiceAccountRequest> {
        var fields = MaskedFields<ProjectUpdateServiceAccountRequest>()
        fields.set(.displayName, \.displayName, displayName)
        fields.set(.role, \.role, role)
        fields.setMessage(.scope, \.scope, scope)
        fields.set(.customTokens, \.customTokens, customTokens)
        fields.set(.trustedEndUserIP, \.trustedEndUserIP, trustedEndUserIP)
        fields.set(.disabled, \.disabled, disabled)
        fields.setMessage(.quotas, \.quotas, quotas)
        return fields
    }
}
