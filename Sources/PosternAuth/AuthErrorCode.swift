/// What went wrong, by FirebaseAuth's names and numbers, so that an application's handling of errors stays as it is.
///
/// Coarser than `AuthError.reason`, which is the server's own word.
public enum AuthErrorCode: Int, Error, Sendable, CaseIterable {
    case invalidCustomToken = 17000
    case customTokenMismatch = 17002
    case invalidCredential = 17004
    case userDisabled = 17005
    case operationNotAllowed = 17006
    case emailAlreadyInUse = 17007
    case invalidEmail = 17008
    case wrongPassword = 17009
    case tooManyRequests = 17010
    case userNotFound = 17011
    case accountExistsWithDifferentCredential = 17012
    case requiresRecentLogin = 17014
    case providerAlreadyLinked = 17015
    case noSuchProvider = 17016
    case invalidUserToken = 17017
    case networkError = 17020
    case userTokenExpired = 17021
    case invalidAPIKey = 17023
    case userMismatch = 17024
    case credentialAlreadyInUse = 17025
    case weakPassword = 17026
    case appNotAuthorized = 17028
    case expiredActionCode = 17029
    case invalidActionCode = 17030
    case invalidMessagePayload = 17031
    case invalidSender = 17032
    case missingEmail = 17034
    /// The tenant does not list the continue URL's host.
    case unauthorizedDomain = 17038
    case invalidContinueURI = 17039
    case missingContinueURI = 17040
    case missingPhoneNumber = 17041
    case invalidPhoneNumber = 17042
    case missingVerificationCode = 17043
    case invalidVerificationCode = 17044
    case missingVerificationID = 17045
    case invalidVerificationID = 17046
    case sessionExpired = 17051
    case quotaExceeded = 17052
    /// The user declined at the identity provider.
    case webContextCancelled = 17058
    /// The identity provider sent the browser back with an error.
    case webSignInUserInteractionFailure = 17063
    case nullUser = 17067
    case invalidProviderID = 17071
    case tenantIDMismatch = 17072
    case unsupportedTenantOperation = 17073
    case rejectedCredential = 17075
    case secondFactorRequired = 17078
    case missingMultiFactorSession = 17081
    case missingMultiFactorInfo = 17082
    case invalidMultiFactorSession = 17083
    case multiFactorInfoNotFound = 17084
    /// A self-service toggle of the tenant, or anonymous users are off: only an administrator can do it.
    case adminRestrictedOperation = 17085
    case unverifiedEmail = 17086
    case secondFactorAlreadyEnrolled = 17087
    case maximumSecondFactorCountExceeded = 17088
    case unsupportedFirstFactor = 17089
    case emailChangeNeedsVerification = 17090
    case missingOrInvalidNonce = 17094
    case blockingCloudFunctionError = 17105
    case passwordDoesNotMeetRequirements = 17211
    /// The storage, which is a file here, cannot be read or written.
    case keychainError = 17995
    case internalError = 17999
    case malformedJWT = 18000
}
