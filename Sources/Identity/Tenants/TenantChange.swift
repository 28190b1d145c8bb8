public import Base
public import Messages
import Outbound

/// A masked change of a tenant's settings, checked field by field. Pure.
public struct TenantChange: Sendable {
    public let wanted: Messages.Tenant
    public let paths: [Text]

    /// What an admin of the tenant must not change: what spends what other tenants need, a suspension that its subject
    /// could end, and a quota that its subject could raise.
    private static let projectAdminPaths: [Text] = [
        "allow_costly_hashes", "suspended", "suspension_reason", "quotas",
    ]

    /// INVALID_UPDATE_MASK for an unknown or repeated path, INSUFFICIENT_PERMISSION for one of a project-admin's.
    public init(_ wanted: Messages.Tenant, paths: [Text], isProjectAdmin: Bool = false) throws(Failure) {
        let restricted = paths.first { path in
            Self.projectAdminPaths.contains { path == $0 || path.bytes.starts(with: $0.bytes + [UInt8(ascii: ".")]) }
        }
        if let restricted, !isProjectAdmin {
            throw Failure(
                .permissionDenied, "INSUFFICIENT_PERMISSION", "\(restricted) is set by a project-admin.",
                metadata: [Failure.Entry("required_role", Role.projectAdmin.name)])
        }
        guard Set(paths).count == paths.count else {
            throw .invalid("INVALID_UPDATE_MASK", field: "update_mask", "names a field twice")
        }
        self.wanted = wanted
        self.paths = paths
    }

    /// Writes the masked fields into `tenant`; returns their names for the event log.
    public func apply(to tenant: inout Messages.Tenant, limits: Limits) throws(Failure) -> Text {
        for path in paths { try apply(path, to: &tenant, limits: limits) }
        return Text(unchecked: Array(paths.map(\.bytes).joined(separator: [UInt8(ascii: ",")])))
    }

    private func apply(_ path: Text, to tenant: inout Messages.Tenant, limits: Limits) throws(Failure) {
        switch path {
        case "display_name":
            try Values.checkDisplayName(wanted.displayName, limits: limits)
            tenant.displayName = wanted.displayName
        case "disable_auth": tenant.disableAuth = wanted.disableAuth
        case "allow_password_signup": tenant.allowPasswordSignup = wanted.allowPasswordSignup
        case "enable_anonymous_user": tenant.enableAnonymousUser = wanted.enableAnonymousUser
        case "enable_email_link_signin": tenant.enableEmailLinkSignin = wanted.enableEmailLinkSignin
        case "allow_international_email": tenant.allowInternationalEmail = wanted.allowInternationalEmail
        case "allow_costly_hashes": tenant.allowCostlyHashes = wanted.allowCostlyHashes
        case "enable_email_privacy": tenant.enableEmailPrivacy = wanted.enableEmailPrivacy
        case "client.permissions.disabled_user_signup":
            setPermission(\.disabledUserSignup, in: &tenant)
        case "client.permissions.disabled_user_deletion":
            setPermission(\.disabledUserDeletion, in: &tenant)
        case "refresh_mode":
            guard wanted.refreshMode != .unspecified else {
                throw .invalid("INVALID_REFRESH_MODE", field: "refresh_mode", "must be ROTATE or REUSE")
            }
            tenant.refreshMode = wanted.refreshMode
        case "session_idle_seconds":
            tenant.sessionIdleSeconds = try seconds(wanted.sessionIdleSeconds, path, 300...31_536_000)
        case "session_absolute_seconds":
            tenant.sessionAbsoluteSeconds = try seconds(wanted.sessionAbsoluteSeconds, path, 300...157_680_000)
        case "recent_login_seconds":
            tenant.recentLoginSeconds = try seconds(wanted.recentLoginSeconds, path, 30...86_400)
        case "password_policy":
            try wanted.passwordPolicy?.check()
            tenant.passwordPolicy = wanted.passwordPolicy
        case "allowed_continue_domains":
            tenant.allowedContinueDomains = try ContinueDomains.checked(wanted.allowedContinueDomains, limits: limits)
            tenant.continueURLRule = .listed
        case "allow_loopback_continue_url": tenant.allowLoopbackContinueURL = wanted.allowLoopbackContinueURL
        case "guidance":
            tenant.guidance = try checkedGuidance()
        case "anonymous_user_expiry_seconds":
            let seconds = wanted.anonymousUserExpirySeconds
            tenant.anonymousUserExpirySeconds =
                seconds == 0 ? 0 : try self.seconds(seconds, path, 86_400...315_360_000)
        case "suspended": tenant.suspended = wanted.suspended
        case "suspension_reason": tenant.suspensionReason = try checkedSuspensionReason()
        case "quotas", "quotas.stored_bytes", "quotas.mutations_per_second", "quotas.anonymous_sign_ups_per_hour":
            tenant.quotas = try changedQuotas(path, tenant.quotas ?? TenantQuotas())
        default:
            throw .invalid(
                "INVALID_UPDATE_MASK", field: "update_mask", "\"\(path)\" is not a setting that can be changed")
        }
    }

    private func setPermission(_ field: WritableKeyPath<ClientPermissions, Bool>, in tenant: inout Messages.Tenant) {
        var permissions = tenant.client?.permissions ?? ClientPermissions()
        permissions[keyPath: field] = wanted.client?.permissions?[keyPath: field] ?? false
        tenant.client = ClientConfig(permissions: permissions)
    }

    private func seconds(_ value: Int64, _ path: Text, _ range: ClosedRange<Int64>) throws(Failure) -> Int64 {
        guard range.contains(value) else {
            throw .invalid(
                "INVALID_DURATION", field: path.string, "must be \(range.lowerBound) to \(range.upperBound) seconds")
        }
        return value
    }

    private func changedQuotas(_ path: Text, _ present: TenantQuotas) throws(Failure) -> TenantQuotas {
        let wanted = wanted.quotas ?? TenantQuotas()
        try wanted.check()
        var quotas = present
        switch path {
        case "quotas.stored_bytes": quotas.storedBytes = wanted.storedBytes
        case "quotas.mutations_per_second": quotas.mutationsPerSecond = wanted.mutationsPerSecond
        case "quotas.anonymous_sign_ups_per_hour": quotas.anonymousSignUpsPerHour = wanted.anonymousSignUpsPerHour
        default: quotas = wanted
        }
        return quotas
    }

    /// It is told in failures: one line, no controls.
    private func checkedSuspensionReason() throws(Failure) -> Text {
        let reason = wanted.suspensionReason
        guard reason.byteCount <= 512, reason.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid(
                "INVALID_SUSPENSION_REASON", field: "suspension_reason", "must be one line of at most 512 bytes")
        }
        return reason
    }

    private func checkedGuidance() throws(Failure) -> Guidance? {
        guard let guidance = wanted.guidance else { return nil }
        guard guidance.message.byteCount <= 512, guidance.locale.byteCount <= 35, guidance.helpURL.byteCount <= 2_048
        else {
            throw .invalid("INVALID_GUIDANCE", field: "guidance", "message ≤ 512, locale ≤ 35, help_url ≤ 2,048 bytes")
        }
        guard guidance.helpURL.isEmpty || HTTPURL(guidance.helpURL, for: .link)?.isPlaintext == false else {
            throw .invalid("INVALID_GUIDANCE", field: "guidance.help_url", "must be an https URL with a host")
        }
        return guidance
    }
}
