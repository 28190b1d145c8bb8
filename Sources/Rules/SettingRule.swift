import Base
public import Messages

/// What there is to know about one of a tenant's settings. Pure.
///
/// A new setting is a field of `Tenant` that is marked (updatable). It does not compile before `Tenant.Path.rule` has a
/// row for it. If its values are checked in a new way, `TenantChange` needs a case for that, too.
struct SettingRule {
    /// Who may change the setting.
    enum Changer {
        case tenantAdmin
        /// An admin of the tenant must not change it: a setting that uses up what other tenants need, a suspension that
        /// its subject could end, a quota that its subject could raise, or how long evidence of its admins' actions is
        /// kept.
        case projectAdmin
    }

    /// Whether a value may take many bytes.
    enum Length {
        /// A switch, a number, or a setting that only a project-admin changes. It is changed in a full tenant, too.
        case short
        case long
    }

    /// Whether another tenant takes the setting from a template.
    enum Template {
        case copied
        /// The setting is the tenant's own: its name, whether it is disabled or suspended, the codes of its test users.
        case own
        /// The setting is a part of another one, which is copied.
        case copiedAsPart
    }

    /// How a wanted value is checked, and brought into the form in which it is kept. `TenantChange` does it.
    enum Check {
        /// Any value will do.
        case any
        case displayName, refreshMode, passwordPolicy, guidance, suspensionReason, quotas
        case secondFactorState, secondFactors, continueDomains, testPhoneNumbers
        case regions(KeyPath<Messages.Tenant, [Text]>)
        case seconds(KeyPath<Messages.Tenant, Int64>, ClosedRange<Int64>)
        /// As `seconds`, or 0.
        case secondsOrZero(KeyPath<Messages.Tenant, Int64>, ClosedRange<Int64>)
    }

    let changer: Changer
    let length: Length
    let template: Template
    let check: Check

    init(_ changer: Changer, _ length: Length, _ template: Template, _ check: Check) {
        (self.changer, self.length, self.template, self.check) = (changer, length, template, check)
    }
}

extension Messages.Tenant.Path {
    /// The table of settings, one row each.
    var rule: SettingRule {
        switch self {
        case .displayName: .init(.tenantAdmin, .long, .own, .displayName)
        case .disableAuth: .init(.tenantAdmin, .short, .own, .any)
        case .allowPasswordSignup: .init(.tenantAdmin, .short, .copied, .any)
        case .enableAnonymousUser: .init(.tenantAdmin, .short, .copied, .any)
        case .clientPermissionsDisabledUserSignup: .init(.tenantAdmin, .short, .copied, .any)
        case .clientPermissionsDisabledUserDeletion: .init(.tenantAdmin, .short, .copied, .any)
        case .enableEmailPrivacy: .init(.tenantAdmin, .short, .copied, .any)
        case .refreshMode: .init(.tenantAdmin, .short, .copied, .refreshMode)
        case .sessionIdleSeconds: .init(.tenantAdmin, .short, .copied, .seconds(\.sessionIdleSeconds, 300...31_536_000))
        case .sessionAbsoluteSeconds:
            .init(.tenantAdmin, .short, .copied, .seconds(\.sessionAbsoluteSeconds, 300...157_680_000))
        case .recentLoginSeconds: .init(.tenantAdmin, .short, .copied, .seconds(\.recentLoginSeconds, 30...86_400))
        case .guidance: .init(.tenantAdmin, .long, .copied, .guidance)
        case .enableEmailLinkSignin: .init(.tenantAdmin, .short, .copied, .any)
        case .passwordPolicy: .init(.tenantAdmin, .long, .copied, .passwordPolicy)
        case .allowInternationalEmail: .init(.tenantAdmin, .short, .copied, .any)
        case .suspended: .init(.projectAdmin, .short, .own, .any)
        case .suspensionReason: .init(.projectAdmin, .short, .own, .suspensionReason)
        case .quotas: .init(.projectAdmin, .short, .copied, .quotas)
        case .quotasStoredBytes: .init(.projectAdmin, .short, .copiedAsPart, .quotas)
        case .quotasMutationsPerSecond: .init(.projectAdmin, .short, .copiedAsPart, .quotas)
        case .quotasAnonymousSignUpsPerHour: .init(.projectAdmin, .short, .copiedAsPart, .quotas)
        case .quotasSMSPerHour: .init(.projectAdmin, .short, .copiedAsPart, .quotas)
        case .anonymousUserExpirySeconds:
            .init(.tenantAdmin, .short, .copied, .secondsOrZero(\.anonymousUserExpirySeconds, 86_400...315_360_000))
        case .allowCostlyHashes: .init(.projectAdmin, .short, .copied, .any)
        case .allowedContinueDomains: .init(.tenantAdmin, .long, .copied, .continueDomains)
        case .allowLoopbackContinueURL: .init(.tenantAdmin, .short, .copied, .any)
        case .enablePhoneSignin: .init(.tenantAdmin, .short, .copied, .any)
        case .allowedSMSRegions: .init(.tenantAdmin, .long, .copied, .regions(\.allowedSMSRegions))
        case .blockedSMSRegions: .init(.tenantAdmin, .long, .copied, .regions(\.blockedSMSRegions))
        case .testPhoneNumbers: .init(.tenantAdmin, .long, .own, .testPhoneNumbers)
        case .secondFactorState: .init(.tenantAdmin, .short, .copied, .secondFactorState)
        case .allowedSecondFactors: .init(.tenantAdmin, .short, .copied, .secondFactors)
        case .eventRetentionSeconds:
            .init(.projectAdmin, .short, .copied, .secondsOrZero(\.eventRetentionSeconds, 86_400...315_360_000))
        }
    }

    /// Whether the setting's values take a few bytes, so that they are changed in a full tenant, too.
    public var isShort: Bool { rule.length == .short }
}
