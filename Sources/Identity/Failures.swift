public import Base
import Messages

// The refusals of account rules, each once: reason, status (BEHAVIOUR of the API: docs/protocol.md) and what to do.

extension Failure {
    public static func tenantNotFound(_ id: Text) -> Failure {
        Failure(.notFound, "TENANT_NOT_FOUND", "There is no tenant \"\(id)\"; create it first.")
    }

    public static let projectDisabled = Failure(
        .permissionDenied, "PROJECT_DISABLED", "Authentication is switched off for this tenant (disable_auth).")

    /// `reason`: what the project-admin wrote.
    public static func tenantSuspended(_ settings: TenantSettings) -> Failure {
        let reason = settings.tenant.suspensionReason
        return Failure(
            .permissionDenied, "TENANT_SUSPENDED",
            "This tenant is suspended\(reason.isEmpty ? "" : ": \(reason)"). Only a project-admin can end that.",
            metadata: [
                Entry("tenant", settings.tenantID.string), Entry("required_role", Role.projectAdmin.name),
            ])
    }

    public static let userNotFound = Failure(.notFound, "USER_NOT_FOUND", "There is no such user in this tenant.")
    public static let userDisabled = Failure(
        .permissionDenied, "USER_DISABLED", "This account has been disabled by an administrator.")

    public static let duplicateUID = Failure(
        .alreadyExists, "DUPLICATE_LOCAL_ID", "Another user has this uid; choose another or leave it empty.")
    public static let emailExists = Failure(
        .alreadyExists, "EMAIL_EXISTS", "Another account has this email address; sign in to it instead.")
    public static let phoneNumberExists = Failure(
        .alreadyExists, "PHONE_NUMBER_EXISTS", "Another account has this phone number.")
    public static let federatedIDExists = Failure(
        .alreadyExists, "FEDERATED_USER_ID_ALREADY_LINKED", "Another account is linked to this identity.")

    public static let invalidLoginCredentials = Failure(
        .unauthenticated, "INVALID_LOGIN_CREDENTIALS", "The email or the password is wrong.")
    public static let emailNotFound = Failure(
        .unauthenticated, "EMAIL_NOT_FOUND", "There is no account with this email address.")
    /// For admins, who ask about a user and do not sign in as one.
    public static let noUserWithEmail = Failure(
        .notFound, "EMAIL_NOT_FOUND", "There is no account with this email address in this tenant.")
    public static let invalidPassword = Failure(.unauthenticated, "INVALID_PASSWORD", "The password is wrong.")
    public static let passwordLoginDisabled = Failure(
        .permissionDenied, "PASSWORD_LOGIN_DISABLED", "Signing in with a password is switched off for this tenant.")
    public static let operationNotAllowed = Failure(
        .permissionDenied, "OPERATION_NOT_ALLOWED", "This way to sign up is switched off for this tenant.")
    public static let anonymousNotAllowed = Failure(
        .permissionDenied, "ADMIN_ONLY_OPERATION",
        "Anonymous users are switched off for this tenant; give an email and a password, or ask an administrator.")

    public static let missingIDToken = Failure.invalid("MISSING_ID_TOKEN", field: "id_token", "is required")
    public static let missingEmail = Failure.invalid("MISSING_EMAIL", field: "email", "is required with a password")
    public static let missingPassword = Failure.invalid(
        "MISSING_PASSWORD", field: "password", "is required with an email")

    public static let invalidIDToken = Failure(
        .unauthenticated, "INVALID_ID_TOKEN", "The ID token is not one of this project's; sign in again.")
    public static let invalidSessionCookie = Failure(
        .unauthenticated, "INVALID_SESSION_COOKIE", "The session cookie is not one of this project's; sign in again.")
    public static let invalidRefreshToken = Failure(
        .unauthenticated, "INVALID_REFRESH_TOKEN", "The refresh token is not one of this project's; sign in again.")
    public static let tenantMismatch = Failure(
        .invalidArgument, "TENANT_ID_MISMATCH", "The token belongs to another tenant than the request names.")
    public static let recentLoginRequired = Failure(
        .failedPrecondition, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN",
        "This change needs a recent login; sign in again and repeat it.")

    /// A credential that is another user's, or nobody's, where the signed-in user's own was asked for.
    static let userMismatch = Failure(
        .invalidArgument, "USER_MISMATCH", "The credential is not one of the signed-in user's.")

    public static func tokenExpired(cause: String) -> Failure {
        Failure(
            .unauthenticated, "TOKEN_EXPIRED", "The token is no longer valid; sign in again.",
            metadata: [Entry("cause", cause)])
    }

    /// An ID token of an older generation; records of before the reason was kept say none.
    static func tokenExpired(revokedFor end: SessionEnd) -> Failure {
        tokenExpired(cause: (RefreshDecision.RefusedCause(end) ?? .admin).rawValue)
    }

    /// A genuine token of a session that is gone.
    public static func sessionGone(_ id: [UInt8], settings: TenantSettings, now: Timestamp) -> Failure {
        tokenExpired(cause: StoredSession.causeOfAbsence(ofSession: id, settings: settings, now: now).rawValue)
    }

    public static func tooManyAttempts(retryAfter: Duration) -> Failure {
        Failure(
            .resourceExhausted, "TOO_MANY_ATTEMPTS_TRY_LATER", "Too many attempts; wait before the next one.",
            retryAfter: retryAfter)
    }
}
