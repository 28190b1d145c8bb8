public import Base
public import Messages

/// Settings that are taken from another tenant. Pure.
public enum TenantTemplate {
    /// The settings that are copied, unless the request names fewer.
    public static let paths = Messages.Tenant.Path.allCases.filter(\.isCopied)

    /// The change that makes a tenant's settings those of `template`. `wanted`: mask paths; empty for all settings that
    /// are copied. INVALID_UPDATE_MASK.
    public static func change(from template: TenantSettings, paths wanted: [Text]) throws(Failure) -> TenantChange {
        let named = try UpdateMask<Messages.Tenant>(naming: wanted).paths
        if let other = named.first(where: { !$0.isCopied }) {
            throw .invalid(.invalidUpdateMask, field: "paths", "\"\(other.name)\" is not copied")
        }
        var tenant = template.tenant
        // Older servers left it unset.
        if tenant.secondFactorState == .unspecified { tenant.secondFactorState = .disabled }
        return try TenantChange(
            tenant, paths: (named.isEmpty ? paths : named).map(\.name), isProjectAdmin: true)
    }
}

extension Messages.Tenant.Path {
    /// Whether the setting is copied. Its name, whether it is disabled or suspended, and the codes of test users are a
    /// tenant's own. A quota is copied with the others, by `quotas`.
    fileprivate var isCopied: Bool {
        switch self {
        case .displayName, .disableAuth, .suspended, .suspensionReason, .testPhoneNumbers, .quotasStoredBytes,
            .quotasMutationsPerSecond, .quotasAnonymousSignUpsPerHour, .quotasSMSPerHour:
            false
        case .allowPasswordSignup, .enableAnonymousUser, .enableEmailLinkSignin, .enableEmailPrivacy,
            .allowInternationalEmail, .allowCostlyHashes, .eventRetentionSeconds, .clientPermissionsDisabledUserSignup,
            .clientPermissionsDisabledUserDeletion, .refreshMode, .sessionIdleSeconds, .sessionAbsoluteSeconds,
            .recentLoginSeconds, .passwordPolicy, .guidance, .quotas, .anonymousUserExpirySeconds,
            .allowedContinueDomains, .allowLoopbackContinueURL, .enablePhoneSignin, .allowedSMSRegions,
            .blockedSMSRegions, .secondFactorState, .allowedSecondFactors:
            true
        }
    }
}
