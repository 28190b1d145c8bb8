import Base
import Messages
import PosternClient
import Synchronization

/// A user's second factors: `User.multiFactor`.
///
/// ```swift
/// let session = try await user.multiFactor.session()
/// let secret = try await TOTPMultiFactorGenerator.generateSecret(with: session)
/// print("Scan this:", secret.qrCodeURL)
/// let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(with: secret, oneTimePassword: code)
/// try await user.multiFactor.enroll(with: assertion, displayName: "My phone")
/// ```
public struct MultiFactor: Sendable {
    private let user: User

    fileprivate init(_ user: User) { self.user = user }

    /// The user's second factors, at most five.
    public var enrolledFactors: [any MultiFactorInfo] {
        user.state.withLock { $0.account.secondFactors.compactMap(\.info) }
    }

    /// How many recovery codes are left.
    public var recoveryCodeCount: Int { user.state.withLock { Int($0.account.recoveryCodeCount) } }

    /// Begins an enrolment. Makes no call to the server; FirebaseAuth makes one.
    public func session() async throws -> MultiFactorSession {
        MultiFactorSession(.enrollment(user), backend: user.backend)
    }

    /// Adds the factor whose code the assertion has. `displayName` is the user's name for the factor, at most 64 bytes.
    ///
    /// Needs a recent login and a verified email. The user is mailed a link that removes the factor again. Throws
    /// invalidVerificationCode, secondFactorAlreadyEnrolled, maximumSecondFactorCountExceeded.
    @discardableResult
    public func enroll(
        with assertion: MultiFactorAssertion, displayName: String? = nil
    ) async throws -> MultiFactorEnrollmentResult {
        let request = try user.backend.enrollment(assertion, displayName: displayName)
        let codesBefore = recoveryCodeCount
        let answer = try await user.exchange(.secondFactorsChanged) {
            [backend = user.backend] idToken, options throws(AuthError) in
            try await backend.finish(request, idToken: idToken, options)
        }
        return await MultiFactorEnrollmentResult(user, answer, codesBefore: codesBefore)
    }

    /// Removes a factor. With the last factor the recovery codes are removed too, and with another one those that its
    /// holder may have made: the codes that came with it, or were made after it was shown. If `recoveryCodeCount` is 0
    /// then, `renewRecoveryCodes()` makes new ones.
    ///
    /// Needs a recent login that showed a factor. Throws requiresRecentLogin, multiFactorInfoNotFound.
    public func unenroll(with factorInfo: any MultiFactorInfo) async throws {
        try await unenroll(withFactorUID: factorInfo.uid)
    }

    /// Removes the factor with this `uid`, as `unenroll(with:)` does.
    public func unenroll(withFactorUID factorUID: String) async throws {
        let backend = user.backend
        let factorID = try backend.text(factorUID, .multiFactorInfoNotFound)
        _ = try await user.exchange(.secondFactorsChanged) { idToken, options throws(AuthError) in
            let request = AccountsWithdrawMfaEnrollmentRequest(
                tenantID: backend.tenantID, idToken: idToken, factorID: factorID)
            let response = try await backend.call {
                try await backend.accounts.withdrawMfaEnrollment(request, options: options)
            }
            return try Answer(response.user, response.tokens)
        }
    }

    /// Makes ten new recovery codes. The former codes become void. The server returns the new codes only once.
    ///
    /// Needs a recent login that showed a factor. Throws requiresRecentLogin, and multiFactorInfoNotFound for a user
    /// without a factor.
    public func renewRecoveryCodes() async throws -> [String] {
        try await user.inTurn { [user] idToken throws(AuthError) in
            let backend = user.backend
            let request = AccountsRenewRecoveryCodesRequest(tenantID: backend.tenantID, idToken: idToken)
            let response = try await backend.call { try await backend.accounts.renewRecoveryCodes(request) }
            var account = user.state.withLock { $0.account }
            account.recoveryCodeCount = Int32(clamping: response.recoveryCodes.count)
            user.changed(account, nil)
            return response.recoveryCodes.map(\.string)
        }
    }
}

extension User {
    /// The user's second factors: a list, and the methods that add and remove factors.
    public var multiFactor: MultiFactor { MultiFactor(self) }
}

/// The result of adding a second factor.
///
/// ```swift
/// let result = try await user.multiFactor.enroll(with: assertion)
/// for code in result.recoveryCodes { print(code) }
/// ```
public struct MultiFactorEnrollmentResult: Sendable {
    /// The user who has the factor.
    public let user: User
    /// The recovery codes, with each of which the user can sign in once without a factor. The server makes them if the
    /// user has none, as with the first factor, and returns them only now: show them and let the user keep them. Empty
    /// otherwise.
    public let recoveryCodes: [String]

    /// `codesBefore`: how many recovery codes the user had.
    ///
    /// A repeated answer has no recovery codes. The codes of the lost answer are replaced, because nobody knows them.
    /// If that fails, the application can call `renewRecoveryCodes` itself.
    init(_ user: User, _ answer: Answer, codesBefore: Int) async {
        self.user = user
        let areLost = answer.recoveryCodes.isEmpty && codesBefore == 0 && answer.account.recoveryCodeCount > 0
        let renewed = areLost ? try? await user.multiFactor.renewRecoveryCodes() : nil
        self.recoveryCodes = renewed ?? answer.recoveryCodes.map(\.string)
    }
}

extension Backend {
    /// The request that adds the assertion's factor. Its ID token is still missing.
    func enrollment(
        _ assertion: MultiFactorAssertion, displayName: String?
    ) throws(AuthError) -> AccountsFinalizeMfaEnrollmentRequest {
        var request = AccountsFinalizeMfaEnrollmentRequest(
            tenantID: tenantID, displayName: try text(displayName ?? ""), endUserIP: endUserIP)
        switch assertion.kind {
        case .newTOTP(let sessionInfo, let code):
            request.sessionInfo = sessionInfo
            request.code = try secret(code, .invalidVerificationCode)
        case .phone(let credential):
            let proof = try phone(credential)
            request.sessionInfo = proof.sessionInfo
            request.code = proof.code
        case .totp, .recoveryCode:
            throw AuthError(
                .invalidCredentialOrProviderID,
                "The assertion finishes a sign-in. Make one with assertionForEnrollment(with:oneTimePassword:).")
        }
        return request
    }

    func finish(
        _ request: AccountsFinalizeMfaEnrollmentRequest, idToken: Text, _ options: CallOptions
    ) async throws(AuthError) -> Answer {
        var request = request
        request.idToken = idToken
        request.deviceToken = device.token
        let response = try await call { [request] in
            try await accounts.finalizeMfaEnrollment(request, options: options)
        }
        var answer = try answer(response.user, response.tokens, deviceToken: response.deviceToken)
        answer.recoveryCodes = response.recoveryCodes
        return answer
    }
}
