import Base
import Messages
import PosternClient

/// Finishes a sign-in that waits for a second factor: an error with the code `secondFactorRequired` carries this
/// object.
///
/// A sign-in waits for five minutes and five wrong codes. A reauthentication may wait likewise.
///
/// ```swift
/// do {
///     try await auth.signIn(withEmail: email, password: password)
/// } catch let error as AuthError {
///     guard let resolver = error.multiFactorResolver, let hint = resolver.hints.first else { throw error }
///     let assertion = TOTPMultiFactorGenerator.assertionForSignIn(withEnrollmentID: hint.uid, oneTimePassword: code)
///     try await resolver.resolveSignIn(with: assertion)
/// }
/// ```
public struct MultiFactorResolver: PendingSignIn, Sendable {
    /// Ties the sign-in's steps together: `PhoneAuthProvider.verifyPhoneNumber(with:multiFactorSession:)` takes it.
    public let session: MultiFactorSession
    /// The user's second factors, any of which finishes the sign-in. Phone numbers show their last four digits only.
    public let hints: [any MultiFactorInfo]
    let credential: Secret
    let refused: RefusedSignIn

    /// The `Auth` that signs in. Nil: a user reauthenticates whom no `Auth` has as its current user.
    public var auth: Auth? { refused.auth }

    /// Finishes the sign-in: the user becomes the current user. After a reauthentication the user has new tokens.
    ///
    /// Throws invalidVerificationCode for a wrong code: ask again, and use this resolver again. Throws
    /// invalidMultiFactorSession when the sign-in is over and has to begin anew; tooManyRequests with `retryAfter`;
    /// sessionExpired when a new SMS is needed.
    @discardableResult
    public func resolveSignIn(with assertion: MultiFactorAssertion) async throws -> AuthDataResult {
        let backend = session.backend
        let request = try request(assertion)
        let (user, answer) = try await refused.finish { options throws(AuthError) in
            let response = try await backend.call {
                try await backend.accounts.finalizeMfaSignIn(request, options: options)
            }
            return try backend.answer(
                response.user, response.tokens, deviceToken: response.deviceToken, isNewUser: response.isNewUser)
        }
        return AuthDataResult(user, answer, providerID: refused.providerID)
    }

    private func request(_ assertion: MultiFactorAssertion) throws(AuthError) -> AccountsFinalizeMfaSignInRequest {
        let backend = session.backend
        var request = AccountsFinalizeMfaSignInRequest(
            tenantID: backend.tenantID, pendingCredential: credential, endUserIP: backend.endUserIP,
            deviceToken: backend.device.token)
        switch assertion.kind {
        case .totp(let factorUID, let code):
            request.factorID = try backend.text(factorUID, .multiFactorInfoNotFound)
            request.proof = .totpCode(try backend.secret(code, .invalidVerificationCode))
        case .recoveryCode(let code):
            request.proof = .recoveryCode(try backend.secret(code, .invalidVerificationCode))
        case .phone(let credential):
            let proof = try backend.phone(credential)
            request.factorID = try factorID(ofCodeIn: proof.sessionInfo)
            request.proof = .phone(proof)
        case .newTOTP:
            throw AuthError(
                .invalidCredentialOrProviderID,
                "The assertion adds a factor. Make one with assertionForSignIn(withEnrollmentID:oneTimePassword:).")
        }
        return request
    }

    /// The factor that the code was sent for. If another session sent the code: the user's phone, if there is only one.
    private func factorID(ofCodeIn sessionInfo: Secret) throws(AuthError) -> Text {
        if let id = session.factorID(ofCodeIn: sessionInfo) { return id }
        let phones = hints.compactMap { $0 as? PhoneMultiFactorInfo }
        guard phones.count == 1, let phone = phones.first else { return .empty }
        return try session.backend.text(phone.uid, .multiFactorInfoNotFound)
    }
}
