import Base
import Messages
import PosternClient

/// A credential of a phone number, under FirebaseAuth's name.
///
/// ```swift
/// let provider = PhoneAuthProvider.provider(auth: auth)
/// let id = try await provider.verifyPhoneNumber("+1 415 555 0123")
/// let credential: PhoneAuthCredential = provider.credential(withVerificationID: id, verificationCode: code)
/// try await user.updatePhoneNumber(credential)
/// ```
public typealias PhoneAuthCredential = AuthCredential

/// Sends codes to phone numbers, and makes credentials of them.
///
/// ```swift
/// let provider = PhoneAuthProvider.provider(auth: auth)
/// let verificationID = try await provider.verifyPhoneNumber("+1 415 555 0123")
/// let credential = provider.credential(withVerificationID: verificationID, verificationCode: code)
/// try await auth.signIn(with: credential)
/// ```
public struct PhoneAuthProvider: Sendable {
    /// The provider id: "phone".
    public static let id = PhoneAuthProviderID

    private let auth: Auth

    /// Makes a provider whose codes the server of `auth` sends.
    public static func provider(auth: Auth) -> PhoneAuthProvider { PhoneAuthProvider(auth: auth) }

    /// Sends a code by SMS. Returns the verification ID, which belongs to the code: without it the code is worth
    /// nothing.
    ///
    /// `phoneNumber` begins with "+" and the country's calling code. The message has the language of `auth`. A code is
    /// good for five minutes and five tries. It signs in, or adds the number to the current user's account.
    ///
    /// Throws invalidPhoneNumber, missingPhoneNumber, operationNotAllowed where the tenant has phone sign-in off or
    /// sends nothing to the number's region, and tooManyRequests with `retryAfter`.
    ///
    /// - Parameter uiDelegate: Takes nil, because no window has to be shown. FirebaseAuth has it.
    public func verifyPhoneNumber(_ phoneNumber: String, uiDelegate: Never? = nil) async throws -> String {
        let backend = auth.backend
        return try await cancellable { () throws(AuthError) in
            let request = AccountsSendVerificationCodeRequest(
                tenantID: backend.tenantID, phoneNumber: try backend.text(phoneNumber, .invalidPhoneNumber),
                endUserIP: backend.endUserIP, locale: backend.language.code, deviceToken: backend.device.token)
            let response = try await backend.call { try await backend.accounts.sendVerificationCode(request) }
            return response.sessionInfo.string
        }
    }

    /// Sends a code to a phone number that is about to become a second factor. Returns the verification ID.
    ///
    /// Without a session the code is for signing in. Throws what `verifyPhoneNumber(_:uiDelegate:)` throws, and
    /// requiresRecentLogin, unverifiedEmail, secondFactorAlreadyEnrolled, maximumSecondFactorCountExceeded.
    public func verifyPhoneNumber(
        _ phoneNumber: String, uiDelegate: Never? = nil, multiFactorSession: MultiFactorSession?
    ) async throws -> String {
        guard let session = multiFactorSession else { return try await verifyPhoneNumber(phoneNumber) }
        return try await session.startPhoneEnrollment(phoneNumber)
    }

    /// Sends a code to a second factor of the user who signs in. Returns the verification ID.
    ///
    /// `multiFactorSession` is the `MultiFactorResolver`'s. Throws invalidMultiFactorSession when the sign-in is over,
    /// missingMultiFactorSession for nil, and tooManyRequests with `retryAfter`.
    public func verifyPhoneNumber(
        with phoneMultiFactorInfo: PhoneMultiFactorInfo, uiDelegate: Never? = nil,
        multiFactorSession: MultiFactorSession?
    ) async throws -> String {
        guard let session = multiFactorSession else {
            throw AuthError(.missingMFAPendingCredential, "A second factor's code needs the resolver's session.")
        }
        return try await session.startPhoneSignIn(phoneMultiFactorInfo)
    }

    /// Makes a credential of the code that the user read.
    public func credential(withVerificationID verificationID: String, verificationCode: String) -> PhoneAuthCredential {
        AuthCredential(
            provider: Self.id, kind: .phone(verificationID: verificationID, code: Secret(verificationCode)))
    }
}

extension User {
    /// Puts the number that the credential proves in the place of the user's present one, or adds it.
    ///
    /// Needs a recent login. A change signs the user out on every other device. Throws credentialAlreadyInUse for a
    /// number of another account, with an `updatedCredential` that signs in to that one.
    public func updatePhoneNumber(_ credential: PhoneAuthCredential) async throws {
        try await prove(credential, .providersChanged) { [backend] idToken, options throws(AuthError) in
            try await backend.signInWithPhone(credential, linkingTo: idToken, changes: true, options)
        }
    }
}

extension Backend {
    /// Signs in with a phone number, or links it.
    func signInWithPhone(
        _ credential: AuthCredential, linkingTo idToken: Text = .empty, changes: Bool = false,
        _ options: CallOptions = .init()
    ) async throws(AuthError) -> Answer {
        var request = AccountsSignInWithPhoneNumberRequest(
            tenantID: tenantID, idToken: idToken, endUserIP: endUserIP, deviceName: deviceName, change: changes)
        switch credential.kind {
        case .phone:
            let proof = try phone(credential)
            request.sessionInfo = proof.sessionInfo
            request.code = proof.code
        case .temporaryProof(let proof, let phoneNumber):
            request.temporaryProof = proof
            request.phoneNumber = try text(phoneNumber, .invalidPhoneNumber)
        default:
            throw AuthError(.invalidCredentialOrProviderID, "The credential is not one of a phone number.")
        }
        let response = try await call(attempting: credential) { [request] in
            try await accounts.signInWithPhoneNumber(request, options: options)
        }
        return try answer(
            response.user, response.tokens, deviceToken: response.deviceToken, isNewUser: response.isNewUser)
    }
}
