public import Base
public import Messages

// The event log's words for a change of a credential: the credential's id, a colon, and the fields that changed. Rights
// are told with their new value. A name, an address and a quota are only named, so the text is bounded. Pure.
//
// Example: `backend:role=tenant-admin,scope=acme,display_name`.

extension ServiceAccount {
    /// The detail of the event of a change. `before`: the account as it was; an empty one if the account is new.
    public func eventDetail(since before: ServiceAccount) -> Text {
        var fields = ChangedFields(of: serviceAccountID)
        fields.note("email", ifChanged: !before.email.isEmpty && email != before.email)
        fields.note(role: role, scope, since: before.role, before.scope)
        fields.note("display_name", ifChanged: displayName != before.displayName)
        fields.note("custom_tokens", customTokens, since: before.customTokens)
        fields.note("disabled", disabled, since: before.disabled)
        fields.note("trusted_end_user_ip", trustedEndUserIP, since: before.trustedEndUserIP)
        fields.note("quotas", ifChanged: quotas ?? CallerQuotas() != before.quotas ?? CallerQuotas())
        return fields.text
    }
}

extension ApiKey {
    /// The detail of the event of a change. `before`: the key as it was; an empty one if the key is new.
    public func eventDetail(since before: ApiKey) -> Text {
        var fields = ChangedFields(of: apiKeyID)
        fields.note(role: role, scope, since: before.role, before.scope)
        fields.note("display_name", ifChanged: displayName != before.displayName)
        fields.note("trusted_end_user_ip", trustedEndUserIP, since: before.trustedEndUserIP)
        fields.note("export_password_hashes", exportPasswordHashes, since: before.exportPasswordHashes)
        fields.note("expires_at_micros", ifChanged: expiresAtMicros != before.expiresAtMicros)
        fields.note("allowed_addresses", ifChanged: allowedAddresses != before.allowedAddresses)
        fields.note(
            "previous_secret_until_micros", ifChanged: previousSecretUntilMicros != before.previousSecretUntilMicros)
        let hasOtherQuotas = quotas ?? CallerQuotas() != before.quotas ?? CallerQuotas()
        fields.note("quotas", ifChanged: hasOtherQuotas || quotaOwnerID != before.quotaOwnerID)
        return fields.text
    }
}

extension CertificateMapping {
    /// The detail of the event of a new mapping.
    public var eventDetail: Text {
        var fields = ChangedFields(of: certificateMappingID)
        fields.note(role: role, scope, since: .unspecified, nil)
        fields.note("display_name", ifChanged: !displayName.isEmpty)
        fields.note("trusted_end_user_ip", trustedEndUserIP, since: false)
        fields.note("quotas", ifChanged: quotas ?? CallerQuotas() != CallerQuotas())
        return fields.text
    }
}

private struct ChangedFields {
    private let id: Text
    private var fields: [String] = []

    init(of id: Text) { self.id = id }

    /// The id alone if nothing changed.
    var text: Text { fields.isEmpty ? id : Text("\(id):\(fields.joined(separator: ","))") }

    mutating func note(_ name: String, ifChanged isChanged: Bool) {
        if isChanged { fields.append(name) }
    }

    mutating func note(_ name: String, _ value: Bool, since before: Bool) {
        if value != before { fields.append("\(name)=\(value)") }
    }

    mutating func note(role: Role, _ scope: Scope?, since formerRole: Role, _ formerScope: Scope?) {
        if role != formerRole { fields.append("role=\(role.name)") }
        if scope?.tenants != formerScope?.tenants { fields.append("scope=\(Self.name(of: scope))") }
    }

    /// No tenant's id has a space.
    private static func name(of scope: Scope?) -> String {
        switch scope?.tenants {
        case .tenantID(let tenantID)?: tenantID.isEmpty ? "the default pool" : tenantID.string
        case .all(true)?: "all tenants"
        case .all(false)?, nil: "no tenant"
        }
    }
}
