// The columns and ids of the protocol's messages; the JSON of whole messages is generated.

import Base
import JSON
import Messages

extension Tenant: Record {
    static let columns = [
        "tenant_id", "display_name", "disable_auth", "allow_password_signup", "enable_anonymous_user",
        "client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion", "updated_at_micros",
    ]

    var id: String { tenantID.string }

    /// Absent messages are shown as empty ones, because the columns would otherwise have nothing to show.
    var json: JSONValue {
        var shown = self
        shown.client = ClientConfig(permissions: client?.permissions ?? ClientPermissions())
        shown.quotas = quotas ?? TenantQuotas()
        return shown.fieldsJSON
    }
}

extension QuotaUse: Record {
    static let columns = ["quota", "used", "limit", "refused"]

    var id: String { quota.string }
}

extension User: Record {
    static let columns = ["uid", "email", "display_name", "disabled", "providers", "created_at_micros"]

    var id: String { uid.string }
}

extension UsersCountResponse: Record {
    static let columns = ["count"]

    var id: String { String(count) }
}

/// The answer to a sign-up, a sign-in or a password change.
struct SignedIn: Record {
    static let columns = ["user.uid", "tokens.id_token_expires_at_micros"]

    let user: User?
    let tokens: TokenPair?

    var id: String { user?.uid.string ?? "" }

    var json: JSONValue { ["user": user?.json ?? .null, "tokens": tokens?.json ?? .null] }
}

extension TokensRefreshResponse: Record {
    static let columns = ["uid", "outcome"]

    var id: String { uid.string }
}

extension TokensVerifyIdTokenResponse: Record {
    static let columns = ["uid", "tenant_id", "session_id", "expires_at_micros"]

    var id: String { uid.string }
}

extension ProjectWhoAmIResponse: Record {
    static let columns = ["caller", "role", "scope", "expires_at_micros"]

    var id: String { caller.string }
}

extension ApiKey: Record {
    static let columns = [
        "api_key_id", "role", "scope", "display_name", "created_at_micros", "last_used_at_micros", "expires_at_micros",
        "revoked_at_micros",
    ]

    var id: String { apiKeyID.string }

    var json: JSONValue {
        var shown = self
        shown.quotas = quotas ?? CallerQuotas()
        return shown.fieldsJSON
    }
}

extension SigningKeyInfo: Record {
    static let columns = [
        "key_id", "token_use", "algorithm", "state", "created_at_micros", "signs_from_micros", "retires_at_micros",
        "rotates_at_micros",
    ]

    var id: String { keyID.string }
}

extension Denial: Record {
    static let columns = [
        "sequence", "time_micros", "toggle", "operation", "decision_id", "uid", "end_user_ip", "peer_address",
        "suppressed_count",
    ]

    var id: String { String(sequence) }
}

extension AuditEvent: Record {
    static let columns = ["sequence", "time_micros", "kind", "uid", "caller", "detail"]

    var id: String { String(sequence) }

    static var whole: JSONValue? { AuditEvent(proof: EventProof(), settingsChange: SettingsChange()).json }

    /// Exports that were made before there was a `settings_change` have lines without it.
    var json: JSONValue {
        guard settingsChange == nil, case .object(let members) = fieldsJSON else { return fieldsJSON }
        return .object(members.filter { $0.name != "settings_change" })
    }
}

extension AuditGetKeyResponse: Record {
    static let columns = ["key_id", "public_key"]

    var id: String { keyID.string }
}

extension DenialCount: Record {
    static let columns = ["hour_start_micros", "operation", "toggle", "count"]

    var id: String { String(hourStartMicros) }
}

extension ProjectServerInfoResponse: Record {
    static let columns = ["version", "project_id", "started_at_micros"]

    var id: String { projectID.string }
}

extension StatsValue: Record {
    static let columns = ["name", "value"]

    var id: String { name.string }
}

extension ContextFile.Context: Record {
    static let columns = ["name", "server", "tenant", "api_key_file", "production"]

    var id: String { name }
}
