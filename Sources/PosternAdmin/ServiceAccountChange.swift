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
    /// All quotas of the account's calls together: a quota that is 0 takes the default of the role.
    public var quotas: CallerQuotas?
    /// The quota of changes a second alone. Zero: the default of the role.
    public var quotaMutationsPerSecond: Int64?
    /// The quota of bytes an hour that changes add, alone. Zero: the default of the role.
    public var quotaWrittenBytesPerHour: Int64?
    /// The quota of codes sent by SMS in an hour, alone. Zero: the default of the role.
    public var quotaSMSPerHour: Int64?

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
        fields.set(.quotasMutationsPerSecond, \.presentQuotas.mutationsPerSecond, quotaMutationsPerSecond)
        fields.set(.quotasWrittenBytesPerHour, \.presentQuotas.writtenBytesPerHour, quotaWrittenBytesPerHour)
        fields.set(.quotasSMSPerHour, \.presentQuotas.smsPerHour, quotaSMSPerHour)
        return fields
    }
}

extension ProjectUpdateServiceAccountRequest {
    /// `quotas`, which are not there while none is set.
    fileprivate var presentQuotas: CallerQuotas {
        get { quotas ?? CallerQuotas() }
        set { quotas = newValue }
    }
}
