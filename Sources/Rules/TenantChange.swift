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
        if !isProjectAdmin, let restricted = mask.paths.first(where: { $0.rule.changer == .projectAdmin }) {
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
        for path in mask.paths { try take(path, into: &tenant, limits: limits) }
        return mask.names
    }

    /// Writes one field, if its value is allowed.
    private func take(
        _ path: Messages.Tenant.Path, into tenant: inout Messages.Tenant, limits: Limits
    ) throws(Failure) {
        tenant.copy(path, from: wanted)
        switch path.rule.check {
        case .any: break
        case .displayName: try Values.checkDisplayName(wanted.displayName, limits: limits)
        case .refreshMode:
            guard wanted.refreshMode != .unspecified else {
                throw .invalid(.invalidRefreshMode, field: "refresh_mode", "must be ROTATE or REUSE")
            }
        case .seconds(let seconds, let range): try check(wanted[keyPath: seconds], path, range)
        case .secondsOrZero(let seconds, let range):
            if wanted[keyPath: seconds] != 0 { try check(wanted[keyPath: seconds], path, range) }
        case .passwordPolicy: try wanted.passwordPolicy?.check()
        case .guidance: try checkGuidance()
        case .suspensionReason: try checkSuspensionReason()
        case .quotas: try wanted.quotas?.check()
        case .regions(let regions): try SMSRules.checkRegions(wanted[keyPath: regions], field: path.name.string)
        case .secondFactorState: try checkSecondFactorState()
        case .secondFactors: try checkSecondFactors()
        case .continueDomains:
            tenant.allowedContinueDomains = try ContinueDomains.checked(wanted.allowedContinueDomains, limits: limits)
            tenant.continueURLRule = .listed
        case .testPhoneNumbers: tenant.testPhoneNumbers = try SMSRules.checked(wanted.testPhoneNumbers)
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

    private func checkSecondFactorState() throws(Failure) {
        guard wanted.secondFactorState != .unspecified else {
            throw .invalid(
                .invalidSecondFactorPolicy, field: "second_factor_state", "must be DISABLED, ENABLED or MANDATORY")
        }
    }

    private func checkSecondFactors() throws(Failure) {
        let kinds = wanted.allowedSecondFactors
        guard !kinds.contains(.unspecified), Set(kinds).count == kinds.count else {
            throw .invalid(
                .invalidSecondFactorPolicy, field: "allowed_second_factors", "must be PHONE or TOTP, each once")
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
