public import Base
public import Messages

// The refusals of account rules, each once: reason, status (docs/protocol.md has them all) and what to do.

extension Failure {
    public static func tenantNotFound(_ id: Text) -> Failure {
        Failure(
            .tenantNotFound,
            "There is no tenant \"\(id)\"; create it, or another one if it was deleted: an id is never used again.")
    }

    public static let projectDisabled = Failure.refused(
        .projectDisabled, by: "disable_auth", "Authentication is switched off for this tenant (disable_auth).")

    /// The message has the reason that the project-admin wrote.
    public static func tenantSuspended(_ settings: TenantSettings) -> Failure {
        let reason = settings.tenant.suspensionReason
        return Failure(
            .tenantSuspended,
            "This tenant is suspended\(reason.isEmpty ? "" : ": \(reason)"). Only a project-admin can end that.",
            metadata: [Entry("tenant", settings.tenantID.string), .requiredRole(.projectAdmin)])
    }

    public static let userNotFound = Failure(.userNotFound, "There is no such user in this tenant.")
    public static let userDisabled = Failure(
        .userDisabled, "This account has been disabled by an administrator.")

    public static let duplicateUID = Failure(
        .duplicateLocalID, "Another user has this uid; choose another or leave it empty.")
    public static let emailExists = Failure(
        .emailExists, "Another account has this email address; sign in to it instead.")
    public static let phoneNumberExists = Failure(
        .phoneNumberExists, "Another account has this phone number.")
    public static let federatedIDExists = Failure(
        .federatedUserIDAlreadyLinked, "Another account is linked to this identity.")

    public static let invalidLoginCredentials = Failure(
        .invalidLoginCredentials, "The email or the password is wrong.")
    public static let emailNotFound = Failure(
        .emailNotFound, "There is no account with this email address.")
    /// For admins, who ask about a user and do not sign in as one.
    public static let noUserWithEmail = Failure(
        .emailNotFound, as: .notFound, "There is no account with this email address in this tenant.")
    public static let invalidPassword = Failure(.invalidPassword, "The password is wrong.")
    public static let passwordLoginDisabled = Failure.refused(
        .passwordLoginDisabled, by: MethodSwitch.password.settingName,
        "Signing in with a password is switched off for this tenant.")
    public static let anonymousNotAllowed = Failure.refused(
        .adminOnlyOperation, by: MethodSwitch.anonymous.settingName,
        "Anonymous users are switched off for this tenant; give an email and a password, or ask an administrator.")
    public static let anonymousWithoutFactor = Failure.refused(
        .adminOnlyOperation, by: "second_factor_state",
        "Nobody signs in to this tenant without a second factor, so it has no anonymous users; give an email and a "
            + "password.")

    /// OPERATION_NOT_ALLOWED for a way to sign in that the tenant has switched off.
    public static func switchedOff(_ methodSwitch: MethodSwitch) -> Failure {
        refused(
            .operationNotAllowed, by: methodSwitch.settingName,
            "This way to sign in or sign up is switched off for this tenant.")
    }

    /// INSUFFICIENT_PERMISSION for a change that only a project-admin may make. `message` says which change.
    public static func needsProjectAdmin(_ message: String) -> Failure {
        Failure(.insufficientPermission, message, metadata: [.requiredRole(.projectAdmin)])
    }

    /// A refusal by a setting of the tenant, which the tenant's admins can change. `setting`: as `Tenant` names it;
    /// empty where it is not known.
    public static func refused(_ reason: Reason, by setting: String, _ message: String) -> Failure {
        let metadata: [Entry] = [Entry("setting", setting), .requiredRole(.tenantAdmin)]
        return Failure(reason, message, metadata: setting.isEmpty ? [] : metadata)
    }

    public static let missingIDToken = Failure.invalid(.missingIDToken, field: "id_token", "is required")
    public static let missingEmail = Failure.invalid(
        .missingEmail, field: "email", "is required, in the request or on the account")
    public static let missingPassword = Failure.invalid(
        .missingPassword, field: "password", "is required with an email")

    public static let invalidIDToken = Failure(
        .invalidIDToken, "The ID token is not one of this project's; sign in again.")
    public static let invalidSessionCookie = Failure(
        .invalidSessionCookie, "The session cookie is not one of this project's; sign in again.")
    public static let invalidRefreshToken = Failure(
        .invalidRefreshToken, "The refresh token is not one of this project's; sign in again.")

    /// TENANT_ID_MISMATCH for a token that was proved to be one of this project's: the message, and the metadata
    /// `tenant`, tell the token's tenant. Nothing is told of a token that was not proved.
    public static func tenantMismatch(tokenOf tokenTenantID: Text, request tenantID: Text) -> Failure {
        Failure(
            .tenantIDMismatch,
            "The token is of \(TenantTitle.of(tokenTenantID)); the request is for \(TenantTitle.of(tenantID)).",
            metadata: [Entry("tenant", tokenTenantID.string)])
    }

    public static let recentLoginRequired = Failure(
        .credentialTooOldLoginAgain,
        "This change needs a recent login; sign in again and repeat it.")

    /// The failure for a credential of another user, or of nobody, where one of the signed-in user's own was asked for.
    public static let userMismatch = Failure(
        .userMismatch, "The credential is not one of the signed-in user's.")

    public static func tokenExpired(cause: RefreshDecision.RefusedCause) -> Failure {
        Failure(
            .tokenExpired, "The token is no longer valid; sign in again.",
            metadata: [Entry("cause", cause.rawValue)])
    }

    /// The failure for an ID token of an older generation; records from before the reason was kept have none.
    public static func tokenExpired(revokedFor end: SessionEnd) -> Failure {
        tokenExpired(cause: RefreshDecision.RefusedCause(end) ?? .admin)
    }

    /// The failure for a genuine token of a session that is gone.
    public static func sessionGone(_ id: [UInt8], settings: TenantSettings, now: Timestamp) -> Failure {
        tokenExpired(cause: StoredSession.causeOfAbsence(ofSession: id, settings: settings, now: now))
    }

    public static func tooManyAttempts(retryAfter: Duration) -> Failure {
        Failure(
            .tooManyAttemptsTryLater, "Too many attempts; wait before the next one.",
            retryAfter: retryAfter)
    }
}

extension Failure.Entry {
    /// The lowest role that is not refused, or that can change the setting which refused.
    public static func requiredRole(_ role: Role) -> Failure.Entry { Failure.Entry("required_role", role.name) }
}
