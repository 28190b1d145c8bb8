public import Base
public import Messages

/// What `updateServiceAccount` changes: nil leaves a field as it is. The fields of `ServiceAccount` explain them.
///
/// `ServiceAccountChange { $0.disabled = true }`
public struct ServiceAccountChange: Sendable {
    public var displayName: Text?
    public var role: Role?
    public var scope: Scope?
    public var customTokens: Bool?
    public var trustedEndUserIP: Bool?
    public var disabled: Bool?
    public var quotas: CallerQuotas?

    public init(_ fill: (inout ServiceAccountChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<ProjectUpdateServiceAccountRequest> {
        var fields = MaskedFields<ProjectUpdateServiceAccountRequest>()
        fields.set("display_name", \.displayName, displayName)
        fields.set("role", \.role, role)
        fields.setMessage("scope", \.scope, scope)
        fields.set("custom_tokens", \.customTokens, customTokens)
        fields.set("trusted_end_user_ip", \.trustedEndUserIP, trustedEndUserIP)
        fields.set("disabled", \.disabled, disabled)
        fields.setMessage("quotas", \.quotas, quotas)
        return fields
    }
}
