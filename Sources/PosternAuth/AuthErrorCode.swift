import Base
import PosternClient

/// A code of an `AuthError`, with FirebaseAuth's name and number.
///
/// A code is coarser than `AuthError.reason`. A later version may know more codes, so a `switch` needs a `default`.
/// Codes that are marked "Not reported yet" exist for source compatibility.
///
/// ```swift
/// do {
///     try await auth.signIn(withEmail: email, password: password)
/// } catch AuthErrorCode.invalidCredential {
///     print("Wrong email or password.")
/// }
/// ```
public struct AuthErrorCode: RawRepresentable, Hashable, Sendable {
    /// FirebaseAuth's number.
    public let rawValue: Int

    private init(_ rawValue: Int) { self.rawValue = rawValue }

    /// The code of a failure: the reason's own; without one, the code of the status that the reason usually has; for a
    /// newer server's reason, the code of the failure's status.
    init(_ failure: Failure) {
        // FirebaseAuth tells a wrong nonce from other flaws of a credential.
        let isWrongNonce = failure.is(.invalidIdpResponse) && failure.metadataValue("detail") == "WRONG_NONCE"
        let own = isWrongNonce ? .missingOrInvalidNonce : failure.knownReason.flatMap { AuthErrorCode($0) }
        self = own ?? AuthErrorCode(failure.knownReason?.status ?? failure.code)
    }

    /// The code of a status, for reasons that have none of their own.
    init(_ status: StatusCode) {
        self =
            switch status {
            case .unavailable, .deadlineExceeded: .networkError
            case .resourceExhausted: .tooManyRequests
            case .unauthenticated: .invalidCredential
            case .permissionDenied: .operationNotAllowed
            default: .internalError
            }
    }

    /// Makes the code of a number. Nil for a number that is not in `allCases`.
    public init?(rawValue: Int) {
        guard Self.names[rawValue] != nil else { return nil }
        self.rawValue = rawValue
    }

    /// Matches an `AuthError` with this code, so that `catch AuthErrorCode.wrongPassword` works.
    public static func ~= (code: AuthErrorCode, error: any Error) -> Bool { (error as? AuthError)?.code == code }

    /// The custom token is malformed, expired, signed by no key of the project, or has forbidden claims.
    public static let invalidCustomToken = AuthErrorCode(17000)
    /// The custom token is for another project or tenant.
    public static let customTokenMismatch = AuthErrorCode(17002)
    /// The credential is wrong: for example a wrong password, or an email without an account.
    public static let invalidCredential = AuthErrorCode(17004)
    /// An administrator has disabled the account.
    public static let userDisabled = AuthErrorCode(17005)
    /// The tenant has this way to sign in, or the operation, switched off.
    public static let operationNotAllowed = AuthErrorCode(17006)
    /// Another account has the email.
    public static let emailAlreadyInUse = AuthErrorCode(17007)
    /// The email is malformed, or not the one that the link was mailed to.
    public static let invalidEmail = AuthErrorCode(17008)
    /// The password is wrong. Reported only by tenants without email-enumeration protection.
    public static let wrongPassword = AuthErrorCode(17009)
    /// Too many attempts or calls. Wait for `AuthError.retryAfter`.
    public static let tooManyRequests = AuthErrorCode(17010)
    /// No account has the email, or the account was deleted.
    public static let userNotFound = AuthErrorCode(17011)
    /// An account with the email signs in another way. See `AuthError.updatedCredential`.
    public static let accountExistsWithDifferentCredential = AuthErrorCode(17012)
    /// The operation needs a recent login. Call `User.reauthenticate(with:)`, then try again.
    public static let requiresRecentLogin = AuthErrorCode(17014)
    /// The user has an identity of this provider already.
    public static let providerAlreadyLinked = AuthErrorCode(17015)
    /// The user has no identity of this provider.
    public static let noSuchProvider = AuthErrorCode(17016)
    /// The user's token is not valid. The user has to sign in again.
    public static let invalidUserToken = AuthErrorCode(17017)
    /// The server, or an identity provider behind it, could not be reached in time.
    public static let networkError = AuthErrorCode(17020)
    /// The user's session is over. The user has to sign in again; see `AuthError.cause`.
    public static let userTokenExpired = AuthErrorCode(17021)
    /// The application's API key is unknown, malformed or revoked.
    public static let invalidAPIKey = AuthErrorCode(17023)
    /// The credential belongs to another user than the one that reauthenticates.
    public static let userMismatch = AuthErrorCode(17024)
    /// Another account has the credential. See `AuthError.updatedCredential`.
    public static let credentialAlreadyInUse = AuthErrorCode(17025)
    /// The password is missing, too short or too long.
    public static let weakPassword = AuthErrorCode(17026)
    /// The application's API key lacks the role or the tenant for this call.
    public static let appNotAuthorized = AuthErrorCode(17028)
    /// The mailed code has expired.
    public static let expiredActionCode = AuthErrorCode(17029)
    /// The mailed code is malformed, used already, replaced by a newer one, or for another purpose.
    public static let invalidActionCode = AuthErrorCode(17030)
    /// Not reported yet. FirebaseAuth: the mail's template is malformed.
    public static let invalidMessagePayload = AuthErrorCode(17031)
    /// Not reported yet. FirebaseAuth: the mail's sender is malformed.
    public static let invalidSender = AuthErrorCode(17032)
    /// The email is empty, or the user has none.
    public static let missingEmail = AuthErrorCode(17034)
    /// The tenant does not allow the host of the continue URL.
    public static let unauthorizedDomain = AuthErrorCode(17038)
    /// The continue URL is malformed.
    public static let invalidContinueURI = AuthErrorCode(17039)
    /// The continue URL is empty.
    public static let missingContinueURI = AuthErrorCode(17040)
    /// The phone number is empty.
    public static let missingPhoneNumber = AuthErrorCode(17041)
    /// The phone number is not in E.164 form.
    public static let invalidPhoneNumber = AuthErrorCode(17042)
    /// The code of an SMS or of an authenticator app is empty.
    public static let missingVerificationCode = AuthErrorCode(17043)
    /// The code of an SMS or of an authenticator app, or the recovery code, is wrong.
    public static let invalidVerificationCode = AuthErrorCode(17044)
    /// The verification id is empty.
    public static let missingVerificationID = AuthErrorCode(17045)
    /// The verification id is unknown, or its code was used.
    public static let invalidVerificationID = AuthErrorCode(17046)
    /// The SMS code has expired, or was guessed at too often. Send another.
    public static let sessionExpired = AuthErrorCode(17051)
    /// A quota of the tenant, of the API key or of the server's storage is used up.
    public static let quotaExceeded = AuthErrorCode(17052)
    /// The user declined at the identity provider.
    public static let webContextCancelled = AuthErrorCode(17058)
    /// The identity provider sent the browser back with an error.
    public static let webSignInUserInteractionFailure = AuthErrorCode(17063)
    /// The call needs a user, and there is none.
    public static let nullUser = AuthErrorCode(17067)
    /// The tenant has no such identity provider, or its configuration is wrong.
    public static let invalidProviderID = AuthErrorCode(17071)
    /// The user, token or key belongs to another tenant, or the tenant does not exist.
    public static let tenantIDMismatch = AuthErrorCode(17072)
    /// Not reported yet. FirebaseAuth: tenants cannot do this.
    public static let unsupportedTenantOperation = AuthErrorCode(17073)
    /// Not reported yet. FirebaseAuth: the credential was rejected as malformed or misused.
    public static let rejectedCredential = AuthErrorCode(17075)
    /// The user has to prove a second factor (`AuthError.multiFactorResolver`), or to add one first
    /// (`AuthError.multiFactorEnrollment`).
    public static let secondFactorRequired = AuthErrorCode(17078)
    /// The session of the second factor is missing.
    public static let missingMultiFactorSession = AuthErrorCode(17081)
    /// No second factor was named.
    public static let missingMultiFactorInfo = AuthErrorCode(17082)
    /// The sign-in that waited for a second factor is over, or the session is one of another purpose. Begin anew.
    public static let invalidMultiFactorSession = AuthErrorCode(17083)
    /// The user has no such second factor.
    public static let multiFactorInfoNotFound = AuthErrorCode(17084)
    /// Only an administrator can do this: the tenant has sign-up, deletion or anonymous users switched off.
    public static let adminRestrictedOperation = AuthErrorCode(17085)
    /// A second factor needs a verified email.
    public static let unverifiedEmail = AuthErrorCode(17086)
    /// The user has this phone number as a second factor already.
    public static let secondFactorAlreadyEnrolled = AuthErrorCode(17087)
    /// The user has as many second factors as there may be: five.
    public static let maximumSecondFactorCountExceeded = AuthErrorCode(17088)
    /// Not reported yet. FirebaseAuth: this way to sign in allows no second factor.
    public static let unsupportedFirstFactor = AuthErrorCode(17089)
    /// Not reported yet. FirebaseAuth: the new email has to be verified first.
    public static let emailChangeNeedsVerification = AuthErrorCode(17090)
    /// The nonce is missing, or does not match the ID token's.
    public static let missingOrInvalidNonce = AuthErrorCode(17094)
    /// Not reported yet. FirebaseAuth: a blocking function refused.
    public static let blockingCloudFunctionError = AuthErrorCode(17105)
    /// The password does not meet the tenant's policy.
    public static let passwordDoesNotMeetRequirements = AuthErrorCode(17211)
    /// The storage, a file on Linux, cannot be read or written.
    public static let keychainError = AuthErrorCode(17995)
    /// Anything else: see `AuthError.reason` and `message`.
    public static let internalError = AuthErrorCode(17999)
    /// The server's ID token cannot be read.
    public static let malformedJWT = AuthErrorCode(18000)
}

extension AuthErrorCode: CaseIterable, CustomStringConvertible {
    /// All codes that this version knows, by number.
    public static let allCases = names.keys.sorted().map { AuthErrorCode($0) }

    /// FirebaseAuth's name of the code.
    public var description: String { Self.names[rawValue] ?? "\(rawValue)" }
}
