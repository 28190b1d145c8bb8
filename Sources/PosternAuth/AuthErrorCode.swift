/// What went wrong, by FirebaseAuth's names and numbers, so that an application's handling of errors stays as it is.
///
/// Coarser than `AuthError.reason`, which is the server's own word. `catch AuthErrorCode.wrongPassword` catches an
/// `AuthError` of that code; so does `switch error.code { case .wrongPassword: … }`. A later version may know more
/// codes.
public struct AuthErrorCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int

    private init(_ rawValue: Int) { self.rawValue = rawValue }

    /// Nil for a number that is not in `allCases`.
    public init?(rawValue: Int) {
        guard Self.names[rawValue] != nil else { return nil }
        self.rawValue = rawValue
    }

    public static func ~= (code: AuthErrorCode, error: any Error) -> Bool { (error as? AuthError)?.code == code }

    public static let invalidCustomToken = AuthErrorCode(17000)
    public static let customTokenMismatch = AuthErrorCode(17002)
    public static let invalidCredential = AuthErrorCode(17004)
    public static let userDisabled = AuthErrorCode(17005)
    public static let operationNotAllowed = AuthErrorCode(17006)
    public static let emailAlreadyInUse = AuthErrorCode(17007)
    public static let invalidEmail = AuthErrorCode(17008)
    public static let wrongPassword = AuthErrorCode(17009)
    public static let tooManyRequests = AuthErrorCode(17010)
    public static let userNotFound = AuthErrorCode(17011)
    public static let accountExistsWithDifferentCredential = AuthErrorCode(17012)
    public static let requiresRecentLogin = AuthErrorCode(17014)
    public static let providerAlreadyLinked = AuthErrorCode(17015)
    public static let noSuchProvider = AuthErrorCode(17016)
    public static let invalidUserToken = AuthErrorCode(17017)
    public static let networkError = AuthErrorCode(17020)
    public static let userTokenExpired = AuthErrorCode(17021)
    public static let invalidAPIKey = AuthErrorCode(17023)
    public static let userMismatch = AuthErrorCode(17024)
    public static let credentialAlreadyInUse = AuthErrorCode(17025)
    public static let weakPassword = AuthErrorCode(17026)
    public static let appNotAuthorized = AuthErrorCode(17028)
    public static let expiredActionCode = AuthErrorCode(17029)
    public static let invalidActionCode = AuthErrorCode(17030)
    public static let invalidMessagePayload = AuthErrorCode(17031)
    public static let invalidSender = AuthErrorCode(17032)
    public static let missingEmail = AuthErrorCode(17034)
    /// The tenant does not list the continue URL's host.
    public static let unauthorizedDomain = AuthErrorCode(17038)
    public static let invalidContinueURI = AuthErrorCode(17039)
    public static let missingContinueURI = AuthErrorCode(17040)
    public static let missingPhoneNumber = AuthErrorCode(17041)
    public static let invalidPhoneNumber = AuthErrorCode(17042)
    public static let missingVerificationCode = AuthErrorCode(17043)
    public static let invalidVerificationCode = AuthErrorCode(17044)
    public static let missingVerificationID = AuthErrorCode(17045)
    public static let invalidVerificationID = AuthErrorCode(17046)
    public static let sessionExpired = AuthErrorCode(17051)
    public static let quotaExceeded = AuthErrorCode(17052)
    /// The user declined at the identity provider.
    public static let webContextCancelled = AuthErrorCode(17058)
    /// The identity provider sent the browser back with an error.
    public static let webSignInUserInteractionFailure = AuthErrorCode(17063)
    public static let nullUser = AuthErrorCode(17067)
    public static let invalidProviderID = AuthErrorCode(17071)
    public static let tenantIDMismatch = AuthErrorCode(17072)
    public static let unsupportedTenantOperation = AuthErrorCode(17073)
    public static let rejectedCredential = AuthErrorCode(17075)
    public static let secondFactorRequired = AuthErrorCode(17078)
    public static let missingMultiFactorSession = AuthErrorCode(17081)
    public static let missingMultiFactorInfo = AuthErrorCode(17082)
    public static let invalidMultiFactorSession = AuthErrorCode(17083)
    public static let multiFactorInfoNotFound = AuthErrorCode(17084)
    /// A self-service toggle of the tenant, or anonymous users are off: only an administrator can do it.
    public static let adminRestrictedOperation = AuthErrorCode(17085)
    public static let unverifiedEmail = AuthErrorCode(17086)
    public static let secondFactorAlreadyEnrolled = AuthErrorCode(17087)
    public static let maximumSecondFactorCountExceeded = AuthErrorCode(17088)
    public static let unsupportedFirstFactor = AuthErrorCode(17089)
    public static let emailChangeNeedsVerification = AuthErrorCode(17090)
    public static let missingOrInvalidNonce = AuthErrorCode(17094)
    public static let blockingCloudFunctionError = AuthErrorCode(17105)
    public static let passwordDoesNotMeetRequirements = AuthErrorCode(17211)
    /// The storage, which is a file here, cannot be read or written.
    public static let keychainError = AuthErrorCode(17995)
    public static let internalError = AuthErrorCode(17999)
    public static let malformedJWT = AuthErrorCode(18000)
}

extension AuthErrorCode: CaseIterable, CustomStringConvertible {
    public static let allCases = names.keys.sorted().map { AuthErrorCode($0) }

    public var description: String { Self.names[rawValue] ?? "\(rawValue)" }

    private static let names: [Int: String] = [
        17000: "invalidCustomToken",
        17002: "customTokenMismatch",
        17004: "invalidCredential",
        17005: "userDisabled",
        17006: "operationNotAllowed",
        17007: "emailAlreadyInUse",
        17008: "invalidEmail",
        17009: "wrongPassword",
        17010: "tooManyRequests",
        17011: "userNotFound",
        17012: "accountExistsWithDifferentCredential",
        17014: "requiresRecentLogin",
        17015: "providerAlreadyLinked",
        17016: "noSuchProvider",
        17017: "invalidUserToken",
        17020: "networkError",
        17021: "userTokenExpired",
        17023: "invalidAPIKey",
        17024: "userMismatch",
        17025: "credentialAlreadyInUse",
        17026: "weakPassword",
        17028: "appNotAuthorized",
        17029: "expiredActionCode",
        17030: "invalidActionCode",
        17031: "invalidMessagePayload",
        17032: "invalidSender",
        17034: "missingEmail",
        17038: "unauthorizedDomain",
        17039: "invalidContinueURI",
        17040: "missingContinueURI",
        17041: "missingPhoneNumber",
        17042: "invalidPhoneNumber",
        17043: "missingVerificationCode",
        17044: "invalidVerificationCode",
        17045: "missingVerificationID",
        17046: "invalidVerificationID",
        17051: "sessionExpired",
        17052: "quotaExceeded",
        17058: "webContextCancelled",
        17063: "webSignInUserInteractionFailure",
        17067: "nullUser",
        17071: "invalidProviderID",
        17072: "tenantIDMismatch",
        17073: "unsupportedTenantOperation",
        17075: "rejectedCredential",
        17078: "secondFactorRequired",
        17081: "missingMultiFactorSession",
        17082: "missingMultiFactorInfo",
        17083: "invalidMultiFactorSession",
        17084: "multiFactorInfoNotFound",
        17085: "adminRestrictedOperation",
        17086: "unverifiedEmail",
        17087: "secondFactorAlreadyEnrolled",
        17088: "maximumSecondFactorCountExceeded",
        17089: "unsupportedFirstFactor",
        17090: "emailChangeNeedsVerification",
        17094: "missingOrInvalidNonce",
        17105: "blockingCloudFunctionError",
        17211: "passwordDoesNotMeetRequirements",
        17995: "keychainError",
        17999: "internalError",
        18000: "malformedJWT",
    ]
}
