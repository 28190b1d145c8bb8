public import Base
public import Messages

/// A masked change of a tenant's settings, checked field by field. Pure.
public struct TenantChange: Sendable {
    public let wanted: Messages.Tenant
    public let mask: UpdateMask<Messages.Tenant>

    /// INSUFFICIENT_PERMISSION for a setting that only a project-admin may change.
    public init(
        _ wanted: Messages.Tenant, _ mask: UpdateMask<Messages.Tenant>, isProjectAdmin: Bool = false
    ) throws(Failure) {
        if !isProjectAdmin, let restricted = mask.paths.first(where: \.isForProjectAdmins) {
            throw .needsProjectAdmin("\(restricted.name) is set by a project-admin.")
        }
        self.wanted = wanted
        self.mask = mask
    }

    /// Takes the paths by their names. INVALID_UPDATE_MASK for a name that is not a path, INSUFFICIENT_PERMISSION.
    public init(_ wanted: Messages.Tenant, paths: [Text], isProjectAdmin: Bool = false) throws(Failure) {
        try self.init(wanted, UpdateMask(naming: paths), isProjectAdmin: isProjectAdmin)
    }

    /// Writes the masked fields into `tenant`; returns their names for the event log.
    public func apply(to tenant: inout Messages.Tenant, limits: Limits) throws(Failure) -> Text {
        for path in mask.paths {
            try check(path, limits: limits)
            tenant.copy(path, from: wanted)
            if path == .allowedContinueDomains {
                tenant.allowedContinueDomains = try ContinueDomains.checked(
                    wanted.allowedContinueDomains, limits: limits)
                tenant.continueURLRule = .listed
            }
            if path == .testPhoneNumbers {
                tenant.testPhoneNumbers = try SMSRules.checked(wanted.testPhoneNumbers)
            }
        }
        return mask.names
    }

    private func check(_ path: Messages.Tenant.Path, limits: Limits) throws(Failure) {
        switch path {
        case .displayName: try Values.checkDisplayName(wanted.displayName, limits: limits)
        case .refreshMode:
            guard wanted.refreshMode != .unspecified else {
                throw .invalid(.invalidRefreshMode, field: "refresh_mode", "must be ROTATE or REUSE")
            }
        case .sessionIdleSeconds: try check(wanted.sessionIdleSeconds, path, 300...31_536_000)
        case .sessionAbsoluteSeconds: try check(wanted.sessionAbsoluteSeconds, path, 300...157_680_000)
        case .recentLoginSeconds: try check(wanted.recentLoginSeconds, path, 30...86_400)
        case .anonymousUserExpirySeconds where wanted.anonymousUserExpirySeconds != 0:
            try check(wanted.anonymousUserExpirySeconds, path, 86_400...315_360_000)
        case .eventRetentionSeconds where wanted.eventRetentionSeconds != 0:
            try check(wanted.eventRetentionSeconds, path, 86_400...315_360_000)
        case .passwordPolicy: try wanted.passwordPolicy?.check()
        case .guidance: try checkGuidance()
        case .suspensionReason: try checkSuspensionReason()
        case .allowedSMSRegions: try SMSRules.checkRegions(wanted.allowedSMSRegions, field: "allowed_sms_regions")
        case .blockedSMSRegions: try SMSRules.checkRegions(wanted.blockedSMSRegions, field: "blocked_sms_regions")
        case .secondFactorState where wanted.secondFactorState == .unspecified:
            throw .invalid(
                .invalidSecondFactorPolicy, field: "second_factor_state", "must be DISABLED, ENABLED or MANDATORY")
        case .allowedSecondFactors:
            let kinds = wanted.allowedSecondFactors
            guard !kinds.contains(.unspecified), Set(kinds).count == kinds.count else {
                throw .invalid(
                    .invalidSecondFactorPolicy, field: "allowed_second_factors", "must be PHONE or TOTP, each once")
            }
        case .quotas, .quotasStoredBytes, .quotasMutationsPerSecond, .quotasAnonymousSignUpsPerHour,
            .quotasSMSPerHour:
            try wanted.quotas?.check()
        case .disableAuth, .allowPasswordSignup, .enableAnonymousUser, .enableEmailLinkSignin, .enableEmailPrivacy,
            .allowInternationalEmail, .allowCostlyHashes, .clientPermissionsDisabledUserSignup,
            .clientPermissionsDisabledUserDeletion, .suspended, .allowLoopbackContinueURL, .anonymousUserExpirySeconds,
            .enablePhoneSignin, .secondFactorState, .eventRetentionSeconds:
            break  // Any value will do.
        case .allowedContinueDomains, .testPhoneNumbers: break  // Checked where they are brought into their form.
        }
    }

    private func check(
        _ value: Int64, _ path: Messages.Tenant.Path, _ range: ClosedRange<Int64>
    ) throws(Failure) {
        guard range.contains(value) else {
            throw .invalid(
                .invalidDuration, field: path.name.string,
                "must be \(range.lowerBound) to \(range.upperBound) seconds")
        }
    }

    /// Failures tell the reason, so it must be one line without control characters.
    private func checkSuspensionReason() throws(Failure) {
        let reason = wanted.suspensionReason
        guard reason.byteCount <= 512, reason.bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid(
                .invalidSuspensionReason, field: "suspension_reason", "must be one line of at most 512 bytes")
        }
    }

    private func checkGuidance() throws(Failure) {
        guard let guidance = wanted.guidance else { return }
        guard guidance.message.byteCount <= 512, guidance.locale.byteCount <= 35, guidance.helpURL.byteCount <= 2_048
        else {
            throw .invalid(.invalidGuidance, field: "guidance", "message ≤ 512, locale ≤ 35, help_url ≤ 2,048 bytes")
        }
        guard guidance.helpURL.isEmpty || HTTPURL(guidance.helpURL, for: .link)?.isPlaintext == false else {
            throw .invalid(.invalidGuidance, field: "guidance.help_url", "must be an https URL with a host")
        }
    }
}

extension Messages.Tenant.Path {
    /// Whether an admin of the tenant must not change the setting: one that uses up what other tenants need, a
    /// suspension that its subject could end, a quota that its subject could raise, or how long evidence of its admins'
    /// actions is kept.
    fileprivate var isForProjectAdmins: Bool {
        switch self {
        case .allowCostlyHashes, .eventRetentionSeconds, .suspended, .suspensionReason, .quotas, .quotasStoredBytes,
            .quotasMutationsPerSecond, .quotasAnonymousSignUpsPerHour, .quotasSMSPerHour:
            true
        case .displayName, .disableAuth, .allowPasswordSignup, .enableAnonymousUser, .enableEmailLinkSignin,
            .enableEmailPrivacy, .allowInternationalEmail, .clientPermissionsDisabledUserSignup,
            .clientPermissionsDisabledUserDeletion, .refreshMode, .sessionIdleSeconds, .sessionAbsoluteSeconds,
            .recentLoginSeconds, .passwordPolicy, .guidance, .anonymousUserExpirySeconds, .allowedContinueDomains,
            .allowLoopbackContinueURL, .enablePhoneSignin, .allowedSMSRegions, .blockedSMSRegions, .testPhoneNumbers,
            .secondFactorState, .allowedSecondFactors:
            false
        }
    }

    /// Whether the setting is a switch, a number, or one that only a project-admin sets: its values take a few bytes.
    public var isShort: Bool {
        switch self {
        case .displayName, .passwordPolicy, .guidance, .allowedContinueDomains, .allowedSMSRegions,
            .blockedSMSRegions, .testPhoneNumbers:
            false
        case .disableAuth, .allowPasswordSignup, .enableAnonymousUser, .enableEmailLinkSignin,
            .enableEmailPrivacy, .allowInternationalEmail, .clientPermissionsDisabledUserSignup,
            .clientPermissionsDisabledUserDeletion, .refreshMode, .sessionIdleSeconds, .sessionAbsoluteSeconds,
            .recentLoginSeconds, .anonymousUserExpirySeconds, .allowLoopbackContinueURL, .enablePhoneSignin,
            .secondFactorState, .allowedSecondFactors, .allowCostlyHashes, .eventRetentionSeconds, .suspended,
            .suspensionReason, .quotas,
            .quotasStoredBytes, .quotasMutationsPerSecond, .quotasAnonymousSignUpsPerHour, .quotasSMSPerHour:
            true
        }
    }
}
