public import Base
public import Messages

/// What `updateSettings` changes: nil leaves a setting as it is, an empty value removes it. The fields of `Tenant`
/// explain them.
///
/// `TenantSettingsChange { $0.disabledUserSignup = true }`
public struct TenantSettingsChange: Sendable {
    public var displayName: Text?
    public var disableAuth: Bool?
    public var allowPasswordSignup: Bool?
    public var enableAnonymousUser: Bool?
    public var enableEmailLinkSignin: Bool?
    public var enableEmailPrivacy: Bool?
    public var allowInternationalEmail: Bool?
    /// Imports may bring dear password hashes. By a project-admin only.
    public var allowCostlyHashes: Bool?
    /// `client.permissions.disabled_user_signup`: nobody comes into being except by an administrator.
    public var disabledUserSignup: Bool?
    /// `client.permissions.disabled_user_deletion`: nobody deletes an account except an administrator.
    public var disabledUserDeletion: Bool?
    public var refreshMode: RefreshMode?
    /// Whole seconds, rounded up, as the other two.
    public var sessionIdle: Duration?
    public var sessionAbsolute: Duration?
    public var recentLogin: Duration?
    public var passwordPolicy: PasswordPolicy?
    public var guidance: Guidance?
    /// Zero: anonymous users are never deleted for being unused.
    public var anonymousUserExpiry: Duration?
    /// This and the next two need a project-admin.
    public var suspended: Bool?
    public var suspensionReason: Text?
    public var quotas: TenantQuotas?
    /// Where continue URLs may lead besides the action page's host; replaces the whole list.
    public var allowedContinueDomains: [Text]?
    public var allowLoopbackContinueURL: Bool?

    public init(_ fill: (inout TenantSettingsChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<Tenant> {
        var fields = MaskedFields<Tenant>()
        fields.set("display_name", \.displayName, displayName)
        fields.set("disable_auth", \.disableAuth, disableAuth)
        fields.set("allow_password_signup", \.allowPasswordSignup, allowPasswordSignup)
        fields.set("enable_anonymous_user", \.enableAnonymousUser, enableAnonymousUser)
        fields.set("enable_email_link_signin", \.enableEmailLinkSignin, enableEmailLinkSignin)
        fields.set("enable_email_privacy", \.enableEmailPrivacy, enableEmailPrivacy)
        fields.set("allow_international_email", \.allowInternationalEmail, allowInternationalEmail)
        fields.set("allow_costly_hashes", \.allowCostlyHashes, allowCostlyHashes)
        fields.set("client.permissions.disabled_user_signup", \.disabledUserSignup, disabledUserSignup)
        fields.set("client.permissions.disabled_user_deletion", \.disabledUserDeletion, disabledUserDeletion)
        fields.set("refresh_mode", \.refreshMode, refreshMode)
        fields.set("session_idle_seconds", \.sessionIdleSeconds, sessionIdle?.secondsRoundedUp)
        fields.set("session_absolute_seconds", \.sessionAbsoluteSeconds, sessionAbsolute?.secondsRoundedUp)
        fields.set("recent_login_seconds", \.recentLoginSeconds, recentLogin?.secondsRoundedUp)
        fields.setMessage("password_policy", \.passwordPolicy, passwordPolicy)
        fields.setMessage("guidance", \.guidance, guidance)
        fields.set(
            "anonymous_user_expiry_seconds", \.anonymousUserExpirySeconds, anonymousUserExpiry?.secondsRoundedUp)
        fields.set("suspended", \.suspended, suspended)
        fields.set("suspension_reason", \.suspensionReason, suspensionReason)
        fields.setMessage("quotas", \.quotas, quotas)
        fields.set("allowed_continue_domains", \.allowedContinueDomains, allowedContinueDomains)
        fields.set("allow_loopback_continue_url", \.allowLoopbackContinueURL, allowLoopbackContinueURL)
        return fields
    }
}

extension Tenant {
    /// `client.permissions`, which are not there while nothing is switched off.
    fileprivate var permissions: ClientPermissions {
        get { client?.permissions ?? ClientPermissions() }
        set { client = ClientConfig(permissions: newValue) }
    }

    fileprivate var disabledUserSignup: Bool {
        get { permissions.disabledUserSignup }
        set { permissions.disabledUserSignup = newValue }
    }

    fileprivate var disabledUserDeletion: Bool {
        get { permissions.disabledUserDeletion }
        set { permissions.disabledUserDeletion = newValue }
    }
}
