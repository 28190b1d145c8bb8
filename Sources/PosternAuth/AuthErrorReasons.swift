import Base
import PosternClient

/// The one table from the server's reasons to FirebaseAuth's codes.
///
/// It holds every reason that the protocol names: a test reads the .proto files. A reason that is not here, from a
/// newer server, is judged by its status.
enum AuthErrorReasons {
    static func code(of failure: Failure) -> AuthErrorCode {
        if failure.reason == "INVALID_IDP_RESPONSE", failure.metadataValue("detail") == "WRONG_NONCE" {
            return .missingOrInvalidNonce
        }
        return codes[failure.reason] ?? code(of: failure.code)
    }

    private static func code(of status: StatusCode) -> AuthErrorCode {
        switch status {
        case .unavailable, .deadlineExceeded: .networkError
        case .resourceExhausted: .tooManyRequests
        case .unauthenticated: .invalidCredential
        case .permissionDenied: .operationNotAllowed
        default: .internalError
        }
    }

    static let codes: [String: AuthErrorCode] = accounts.merging(callers) { $1 }.merging(others) { $1 }

    /// The reasons of methods for end users.
    private static let accounts: [String: AuthErrorCode] = [
        "ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL": .accountExistsWithDifferentCredential,
        "ADMIN_ONLY_OPERATION": .adminRestrictedOperation,
        "ADMIN_RESTRICTED_OPERATION": .adminRestrictedOperation,
        "CLAIMS_TOO_LARGE": .invalidCustomToken,
        "CREDENTIAL_ALREADY_IN_USE": .credentialAlreadyInUse,
        "CREDENTIAL_MISMATCH": .customTokenMismatch,
        "CREDENTIAL_TOO_OLD_LOGIN_AGAIN": .requiresRecentLogin,
        "EMAIL_EXISTS": .emailAlreadyInUse,
        "EMAIL_NOT_FOUND": .userNotFound,
        "EXPIRED_OOB_CODE": .expiredActionCode,
        "FEDERATED_USER_ID_ALREADY_LINKED": .credentialAlreadyInUse,
        "FORBIDDEN_CLAIM": .invalidCustomToken,
        "IDP_UNAVAILABLE": .networkError,
        "INVALID_CLAIMS": .invalidCustomToken,
        "INVALID_CONTINUE_URI": .invalidContinueURI,
        "UNAUTHORIZED_DOMAIN": .unauthorizedDomain,
        "INVALID_CREDENTIAL_OR_PROVIDER_ID": .invalidCredential,
        "INVALID_CUSTOM_PARAMETER": .internalError,
        "INVALID_CUSTOM_TOKEN": .invalidCustomToken,
        "INVALID_DISPLAY_NAME": .internalError,
        "INVALID_EMAIL": .invalidEmail,
        "INVALID_END_USER_IP": .internalError,
        "INVALID_IDENTIFIER": .invalidEmail,
        "INVALID_IDP_CONFIGURATION": .invalidProviderID,
        "INVALID_IDP_RESPONSE": .invalidCredential,
        "INVALID_ID_TOKEN": .invalidUserToken,
        "INVALID_LOCALE": .internalError,
        "INVALID_LOGIN_CREDENTIALS": .invalidCredential,
        "INVALID_OOB_CODE": .invalidActionCode,
        "INVALID_PASSWORD": .wrongPassword,
        "INVALID_PENDING_TOKEN": .invalidCredential,
        "INVALID_PHOTO_URL": .internalError,
        "INVALID_REFRESH_TOKEN": .invalidUserToken,
        "INVALID_SCOPE": .internalError,
        "INVALID_UID": .invalidCustomToken,
        "LAST_SIGN_IN_METHOD": .operationNotAllowed,
        "MISSING_CONTINUE_URI": .missingContinueURI,
        "MISSING_CREDENTIAL": .invalidCredential,
        "MISSING_CUSTOM_TOKEN": .invalidCustomToken,
        "MISSING_EMAIL": .missingEmail,
        "MISSING_IDENTIFIER": .missingEmail,
        "MISSING_ID_TOKEN": .nullUser,
        "MISSING_NEW_EMAIL": .missingEmail,
        "MISSING_OOB_CODE": .invalidActionCode,
        "MISSING_PASSWORD": .weakPassword,
        "MISSING_REQ_TYPE": .internalError,
        "MISSING_SESSION_ID": .internalError,
        "NO_SUCH_PROVIDER": .noSuchProvider,
        "OPERATION_NOT_ALLOWED": .operationNotAllowed,
        "PASSWORD_DOES_NOT_MEET_REQUIREMENTS": .passwordDoesNotMeetRequirements,
        "PASSWORD_LOGIN_DISABLED": .operationNotAllowed,
        "PASSWORD_TOO_LONG": .weakPassword,
        "PHONE_NUMBER_EXISTS": .credentialAlreadyInUse,
        "PROJECT_DISABLED": .operationNotAllowed,
        "TENANT_SUSPENDED": .operationNotAllowed,
        "PROVIDER_ALREADY_LINKED": .providerAlreadyLinked,
        "PROVIDER_NOT_FOUND": .invalidProviderID,
        "SESSION_NOT_FOUND": .internalError,
        "TENANT_ID_MISMATCH": .tenantIDMismatch,
        "TENANT_NOT_FOUND": .tenantIDMismatch,
        "TOKEN_EXPIRED": .userTokenExpired,
        "TOO_MANY_ATTEMPTS_TRY_LATER": .tooManyRequests,
        "USER_DISABLED": .userDisabled,
        "USER_MISMATCH": .userMismatch,
        "USER_NOT_FOUND": .userNotFound,
        "WEAK_PASSWORD": .weakPassword,
    ]

    /// The reasons that concern the application's own key, the connection to the server, or the server.
    private static let callers: [String: AuthErrorCode] = [
        "ALREADY_DONE": .internalError,
        "CALLER_UNAUTHENTICATED": .invalidAPIKey,
        "IDEMPOTENCY_KEY_REUSED": .internalError,
        "INSUFFICIENT_PERMISSION": .appNotAuthorized,
        "INVALID_API_KEY": .invalidAPIKey,
        "QUOTA_EXCEEDED": .quotaExceeded,
        "SERVER_OVERLOADED": .tooManyRequests,
        "STORE_FULL": .quotaExceeded,
        "TOO_MANY_IDEMPOTENCY_KEYS": .quotaExceeded,
        ClientReason.connectionFailed: .networkError,
        ClientReason.connectionLost: .networkError,
        ClientReason.deadlineExceeded: .networkError,
        ClientReason.refused: .networkError,
        ClientReason.channelClosed: .internalError,
        ClientReason.cancelled: .internalError,
        ClientReason.tooManyWaitingCalls: .tooManyRequests,
        ClientReason.messageTooLarge: .internalError,
        ClientReason.malformedResponse: .internalError,
    ]

    /// What only the methods of administrators and back ends say: `Auth` calls none of them.
    private static let others: [String: AuthErrorCode] = Dictionary(
        uniqueKeysWithValues: [
            "API_KEY_NOT_FOUND", "BUILT_IN_SERVICE_ACCOUNT", "CLIENT_SECRET_REQUIRED", "DUPLICATE_LOCAL_ID",
            "INVALID_ACTION_URL", "INVALID_ALGORITHM", "INVALID_APPLE_KEY", "INVALID_CLIENT_ID",
            "INVALID_CLIENT_SECRET", "INVALID_CONTINUE_DOMAIN", "INVALID_DURATION", "INVALID_ENDPOINT",
            "INVALID_HEARTBEAT", "INVALID_ISSUER", "INVALID_PROVIDER", "INVALID_PROVIDER_ID", "INVALID_PUBLIC_KEY",
            "INVALID_QUOTA", "INVALID_ROLE", "INVALID_SEQUENCE", "INVALID_SERVICE_ACCOUNT_ID",
            "INVALID_SESSION_COOKIE", "INVALID_SMTP_SERVER", "INVALID_SUSPENSION_REASON", "INVALID_TEMPLATE",
            "INVALID_TENANT_ID", "INVALID_TRUST", "INVALID_UPDATE_MASK", "INVALID_WEBHOOK", "LAST_ADMIN_KEY",
            "MISSING_TOKEN", "OUTBOX_MESSAGE_NOT_DELIVERABLE", "OUTBOX_MESSAGE_NOT_FOUND", "PASSWORD_HASH_TOO_COSTLY",
            "PROVIDER_ID_EXISTS", "SENDER_REQUIRED", "SERVICE_ACCOUNT_ID_EXISTS", "SERVICE_ACCOUNT_KEY_EXISTS",
            "SERVICE_ACCOUNT_KEY_NOT_FOUND", "SERVICE_ACCOUNT_NOT_FOUND", "SIGNING_KEY_NOT_FOUND", "TENANT_ID_EXISTS",
            "TOO_MANY_PROVIDERS", "TOO_MANY_REBINDINGS", "TOO_MANY_SERVICE_ACCOUNT_KEYS",
        ].map { ($0, AuthErrorCode.internalError) }
    ).merging(["INVALID_PHONE_NUMBER": .invalidPhoneNumber]) { $1 }
}
