public import Base
public import Messages

/// A change of a tenant's settings, for `TenantAdmin.updateSettings` and `ProjectAdmin`. Nil leaves a setting as it is;
/// an empty value removes it.
///
/// Durations are sent in whole seconds, rounded up.
///
/// ```swift
/// try await tenant.updateSettings(TenantSettingsChange { $0.disabledUserSignup = true })
/// ```
public struct TenantSettingsChange: Sendable {
    /// The name for people, at most 256 bytes.
    public var displayName: Text?
    /// Switches authentication off: every call about users is refused with PROJECT_DISABLED. Project-admins can still
    /// manage the users.
    public var disableAuth: Bool?
    /// Allows sign-up and sign-in with email and password.
    public var allowPasswordSignup: Bool?
    /// Allows anonymous users.
    public var enableAnonymousUser: Bool?
    /// Allows signing in with a mailed link.
    public var enableEmailLinkSignin: Bool?
    /// Email-enumeration protection: answers tell nobody which emails have accounts. On by default.
    public var enableEmailPrivacy: Bool?
    /// Accepts emails beyond ASCII (RFC 6531).
    public var allowInternationalEmail: Bool?
    /// Lets imports bring password hashes that are costly to check. Needs a project-admin.
    public var allowCostlyHashes: Bool?
    /// Switches sign-up off: only administrators create users. In the API: `client.permissions.disabled_user_signup`.
    public var disabledUserSignup: Bool?
    /// Switches deletion off: only administrators delete users. In the API:
    /// `client.permissions.disabled_user_deletion`.
    public var disabledUserDeletion: Bool?
    /// Says whether a refresh replaces the refresh token.
    public var refreshMode: RefreshMode?
    /// The time after which an unused session expires. Default: 30 days.
    public var sessionIdle: Duration?
    /// The greatest age of a session, however often it is refreshed. Default: 180 days.
    public var sessionAbsolute: Duration?
    /// The greatest age of a login for a sensitive change. Default: 5 minutes.
    public var recentLogin: Duration?
    /// The rules for new passwords of end users. Administrators may set others.
    public var passwordPolicy: PasswordPolicy?
    /// The message for end users whom a switch refuses.
    public var guidance: Guidance?
    /// The time after which an unused anonymous user is deleted: 1 day to 10 years. Zero: never.
    public var anonymousUserExpiry: Duration?
    /// Says how long the tenant's events are kept. Zero: for good. Needs a project-admin.
    public var eventRetention: Duration?
    /// Suspends the tenant: all its calls are refused with TENANT_SUSPENDED. Needs a project-admin.
    public var suspended: Bool?
    /// The reason of the suspension, at most 512 bytes, as refusals tell it. Needs a project-admin.
    public var suspensionReason: Text?
    /// All quotas of the tenant together: a quota that is 0 takes the server's default. Needs a project-admin.
    public var quotas: TenantQuotas?
    /// The quota of stored bytes alone. Zero: the server's default. Needs a project-admin.
    public var quotaStoredBytes: Int64?
    /// The quota of changes a second alone. Zero: the server's default. Needs a project-admin.
    public var quotaMutationsPerSecond: Int64?
    /// The quota of anonymous sign-ups an hour alone. Zero: the server's default. Needs a project-admin.
    public var quotaAnonymousSignUpsPerHour: Int64?
    /// The quota of codes sent by SMS in an hour, alone. Zero: the server's default. Needs a project-admin.
    public var quotaSMSPerHour: Int64?
    /// The hosts that continue URLs may lead to, beside the action page's host. At most 50. Replaces the whole list.
    public var allowedContinueDomains: [Text]?
    /// Lets continue URLs lead to the user's own machine, for development.
    public var allowLoopbackContinueURL: Bool?
    /// Allows signing in with a code sent to a phone number.
    public var enablePhoneSignin: Bool?
    /// The regions whose numbers get codes, as ISO 3166-1 codes. Empty: all regions that are not blocked. Replaces the
    /// list.
    public var allowedSMSRegions: [Text]?
    /// The regions whose numbers get no codes. Replaces the whole list.
    public var blockedSMSRegions: [Text]?
    /// Phone numbers that get no SMS and have a fixed code; at most 10. Replaces the whole list.
    public var testPhoneNumbers: [TestPhoneNumber]?
    /// Says whether users may have second factors, or must. See also
    /// `TenantAdmin.updateSettingsEndingSessionsWithoutSecondFactor`.
    public var secondFactorState: SecondFactorState?
    /// The kinds of second factors that users may add. Empty: all. Replaces the whole list.
    public var allowedSecondFactors: [SecondFactorKind]?

    /// Creates a change. The closure sets the settings.
    public init(_ fill: (inout TenantSettingsChange) -> Void = { _ in }) { fill(&self) }

    var fields: MaskedFields<Tenant> {
        var fields = MaskedFields<Tenant>()
        fields.set(.displayName, \.displayName, displayName)
        fields.set(.disableAuth, \.disableAuth, disableAuth)
        fields.set(.allowPasswordSignup, \.allowPasswordSignup, allowPasswordSignup)
        fields.set(.enableAnonymousUser, \.enableAnonymousUser, enableAnonymousUser)
        fields.set(.enableEmailLinkSignin, \.enableEmailLinkSignin, enableEmailLinkSignin)
        fields.set(.enableEmailPrivacy, \.enableEmailPrivacy, enableEmailPrivacy)
        fields.set(.allowInternationalEmail, \.allowInternationalEmail, allowInternationalEmail)
        fields.set(.allowCostlyHashes, \.allowCostlyHashes, allowCostlyHashes)
        fields.set(.clientPermissionsDisabledUserSignup, \.disabledUserSignup, disabledUserSignup)
        fields.set(.clientPermissionsDisabledUserDeletion, \.disabledUserDeletion, disabledUserDeletion)
        fields.set(.refreshMode, \.refreshMode, refreshMode)
        fields.set(.sessionIdleSeconds, \.sessionIdleSeconds, sessionIdle?.secondsRoundedUp)
        fields.set(.sessionAbsoluteSeconds, \.sessionAbsoluteSeconds, sessionAbsolute?.secondsRoundedUp)
        fields.set(.recentLoginSeconds, \.recentLoginSeconds, recentLogin?.secondsRoundedUp)
        fields.setMessage(.passwordPolicy, \.passwordPolicy, passwordPolicy)
        fields.setMessage(.guidance, \.guidance, guidance)
        fields.set(
            .anonymousUserExpirySeconds, \.anonymousUserExpirySeconds, anonymousUserExpiry?.secondsRoundedUp)
        fields.set(.eventRetentionSeconds, \.eventRetentionSeconds, eventRetention?.secondsRoundedUp)
        fields.set(.suspended, \.suspended, suspended)
        fields.set(.suspensionReason, \.suspensionReason, suspensionReason)
        fields.setMessage(.quotas, \.quotas, quotas)
        fields.set(.quotasStoredBytes, \.presentQuotas.storedBytes, quotaStoredBytes)
        fields.set(.quotasMutationsPerSecond, \.presentQuotas.mutationsPerSecond, quotaMutationsPerSecond)
        fields.set(
            .quotasAnonymousSignUpsPerHour, \.presentQuotas.anonymousSignUpsPerHour, quotaAnonymousSignUpsPerHour)
        fields.set(.quotasSMSPerHour, \.presentQuotas.smsPerHour, quotaSMSPerHour)
        fields.set(.allowedContinueDomains, \.allowedContinueDomains, allowedContinueDomains)
        fields.set(.allowLoopbackContinueURL, \.allowLoopbackContinueURL, allowLoopbackContinueURL)
        fields.set(.enablePhoneSignin, \.enablePhoneSignin, enablePhoneSignin)
        fields.set(.allowedSMSRegions, \.allowedSMSRegions, allowedSMSRegions)
        fields.set(.blockedSMSRegions, \.blockedSMSRegions, blockedSMSRegions)
        fields.set(.testPhoneNumbers, \.testPhoneNumbers, testPhoneNumbers)
        fields.set(.secondFactorState, \.secondFactorState, secondFactorState)
        fields.set(.allowedSecondFactors, \.allowedSecondFactors, allowedSecondFactors)
        return fields
    }
}

extension Tenant {
    /// `client.permissions`, which are not there while nothing is switched off.
    fileprivate var permissions: ClientPermissions {
        get { client?.permissions ?? ClientPermissions() }
        set { client = ClientConfig(permissions: newValue) }
    }

    /// `quotas`, which are not there while none is set.
    fileprivate var presentQuotas: TenantQuotas {
        get { quotas ?? TenantQuotas() }
        set { quotas = newValue }
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
