import Base
import Messages
import PosternClient
import Synchronization

/// Ties the steps of an enrolment or of a sign-in together. It comes from `MultiFactor.session()`,
/// `MultiFactorResolver.session` or `MultiFactorEnrollment.session`.
///
/// ```swift
/// let session = try await user.multiFactor.session()
/// let secret = try await TOTPMultiFactorGenerator.generateSecret(with: session)
/// print(secret.qrCodeURL)
/// ```
public final class MultiFactorSession: Sendable {
    enum Purpose: Sendable {
        /// A signed-in user adds a factor.
        case enrollment(User)
        /// A user who has no factor has to add one before signing in. The credential takes the place of an ID token.
        case requiredEnrollment(Text)
        /// A sign-in that waits for its second factor, by its pending credential.
        case signIn(Secret)
    }

    let purpose: Purpose
    let backend: Backend
    /// The codes that were sent: the server's `session_info` of each code, and the factor for which it was sent.
    private let sentCodes = Mutex<[(sessionInfo: Secret, factorID: Text)]>([])

    init(_ purpose: Purpose, backend: Backend) {
        self.purpose = purpose
        self.backend = backend
    }

    /// Sends a code to the number that is about to become a factor. Returns the verification ID.
    func startPhoneEnrollment(_ phoneNumber: String) async throws -> String {
        let number = try backend.text(phoneNumber, .invalidPhoneNumber)
        return try await startEnrollment(.phoneNumber(number)).sessionInfo.string
    }

    func startTOTPEnrollment() async throws -> TOTPSecret {
        try TOTPSecret(try await startEnrollment(.totp(TotpEnrollment())))
    }

    private func startEnrollment(
        _ factor: AccountsStartMfaEnrollmentRequest.Factor
    ) async throws -> AccountsStartMfaEnrollmentResponse {
        switch purpose {
        case .enrollment(let user):
            return try await user.inTurn { [backend] idToken throws(AuthError) in
                try await backend.startEnrollment(of: factor, idToken: idToken)
            }
        case .requiredEnrollment(let credential):
            return try await cancellable { [backend] () throws(AuthError) in
                try await backend.startEnrollment(of: factor, idToken: credential)
            }
        case .signIn: throw Self.wrongPurpose("This session finishes a sign-in. Name the factor that is sent a code.")
        }
    }

    /// Sends a code to a factor of the user who signs in. Returns the verification ID.
    func startPhoneSignIn(_ factor: PhoneMultiFactorInfo) async throws -> String {
        guard case .signIn(let credential) = purpose else {
            throw Self.wrongPurpose("This session adds a factor. Name the phone number that is sent a code.")
        }
        let factorID = try backend.text(factor.uid, .multiFactorInfoNotFound)
        let sessionInfo = try await cancellable { [backend] () throws(AuthError) in
            let request = AccountsStartMfaSignInRequest(
                tenantID: backend.tenantID, pendingCredential: credential, factorID: factorID,
                endUserIP: backend.endUserIP, locale: backend.language.code, deviceToken: backend.device.token)
            return try await backend.call { try await backend.accounts.startMfaSignIn(request) }.sessionInfo
        }
        sentCodes.withLock { $0.append((sessionInfo, factorID)) }
        return sessionInfo.string
    }

    /// The factor that a code was sent for. Nil: another session sent it.
    func factorID(ofCodeIn sessionInfo: Secret) -> Text? {
        sentCodes.withLock { codes in codes.last { $0.sessionInfo == sessionInfo }?.factorID }
    }

    static func wrongPurpose(_ message: String) -> AuthError {
        AuthError(.invalidMFAPendingCredential, message)
    }
}

extension Backend {
    fileprivate func startEnrollment(
        of factor: AccountsStartMfaEnrollmentRequest.Factor, idToken: Text
    ) async throws(AuthError) -> AccountsStartMfaEnrollmentResponse {
        let request = AccountsStartMfaEnrollmentRequest(
            tenantID: tenantID, idToken: idToken, factor: factor, endUserIP: endUserIP, locale: language.code)
        return try await call { try await accounts.startMfaEnrollment(request) }
    }
}

extension Secret {
    /// The secret as a text, for the application to keep.
    var string: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
