import Base
import Messages
import PosternClient

/// Adds a second factor to the account of a user who cannot sign in without one: the tenant requires a second factor,
/// and the user has none. An error with the reason SECOND_FACTOR_ENROLLMENT_REQUIRED carries this object.
///
/// A factor needs a verified email. The email can be verified before the factor is added.
///
/// ```swift
/// do {
///     try await auth.signIn(withEmail: email, password: password)
/// } catch let error as AuthError {
///     guard let enrollment = error.multiFactorEnrollment else { throw error }
///     let secret = try await TOTPMultiFactorGenerator.generateSecret(with: enrollment.session)
///     print("Scan this:", secret.qrCodeURL)
///     let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(with: secret, oneTimePassword: code)
///     let result = try await enrollment.enroll(with: assertion, displayName: "My phone")
///     print("Keep these:", result.recoveryCodes)
/// }
/// ```
public struct MultiFactorEnrollment: PendingSignIn, Sendable {
    /// Ties the enrolment's steps together.
    public let session: MultiFactorSession
    let credential: Text
    let refused: RefusedSignIn

    /// Adds the factor and signs in: the user becomes the current user. `displayName` is the user's name for the
    /// factor, at most 64 bytes.
    ///
    /// Throws unverifiedEmail; invalidVerificationCode for a wrong code: ask again.
    @discardableResult
    public func enroll(
        with assertion: MultiFactorAssertion, displayName: String? = nil
    ) async throws -> MultiFactorEnrollmentResult {
        let backend = session.backend
        let request = try backend.enrollment(assertion, displayName: displayName)
        let (user, answer) = try await refused.finish { [credential] options throws(AuthError) in
            try await backend.finish(request, idToken: credential, options)
        }
        return await MultiFactorEnrollmentResult(user, answer, codesBefore: 0)
    }

    /// Mails a link to the user's email. The link proves that the email belongs to the user.
    public func sendEmailVerification(with settings: ActionCodeSettings = ActionCodeSettings()) async throws {
        let backend = session.backend
        try await cancellable { [credential] () throws(AuthError) in
            try await backend.sendCode(.verifyEmail, idToken: credential, settings: settings)
        }
    }

    /// Mails a link to `email`. The link makes `email` the user's email, which is then verified. For users without an
    /// email, who signed in by phone for example.
    ///
    /// The link ends this enrolment, because a new email ends every session: sign in again to get another enrolment.
    public func sendEmailVerification(
        beforeUpdatingEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let backend = session.backend
        let email = try backend.text(email, .invalidEmail)
        try await cancellable { [credential] () throws(AuthError) in
            try await backend.sendCode(.verifyAndChangeEmail, newEmail: email, idToken: credential, settings: settings)
        }
    }
}
