import Base
import Identity
import Messages

/// A password found right: whose it is, and a hash by today's profile where the stored one is outdated.
struct PasswordProof: Sendable {
    let account: Account
    let newHash: Text?
}

extension Call {
    /// Proves an email and a password, then runs `body`; all of it counts as one attempt of the throttle, which is
    /// charged before the password is looked at and given back unless the password was wrong. Both are done again when
    /// `body` throws `AccountMoved`. A guess from nowhere known may have to wait its turn.
    ///
    /// Refusals: MISSING_EMAIL, INVALID_EMAIL, MISSING_PASSWORD, TOO_MANY_ATTEMPTS_TRY_LATER, INVALID_LOGIN_CREDENTIALS
    /// (or, without email-enumeration protection, EMAIL_NOT_FOUND and INVALID_PASSWORD), USER_DISABLED (only after the
    /// right password), and what `body` throws.
    func withPasswordProof(
        email text: Text, password: Secret, address: EndUserAddress?, deviceToken: Text,
        _ body: (PasswordProof) async throws -> SignedIn
    ) async throws -> SignedIn {
        if text.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(text, form: .toFind, limits: limits)
        if password.isEmpty { throw Failure.missingPassword }
        let check = PasswordCheck()
        func signIn() async throws -> SignedIn {
            try await startingOverWhenAccountMoved { try await body(try await proof(email, password, check)) }
        }
        if settings.isSynthetic { return try await signIn() }
        // The account of now tells which devices and addresses are known; whose password is proved is looked up later.
        let account = try project.accountReadAlike(email: email, tenantID: tenantID)
        let guesses = project.guesses
        let charge = try await guesses.admit(
            passwordGuess(email: email, account: account, address: address, deviceToken: deviceToken))
        do {
            let signedIn = try await signIn()
            guesses.succeeded(charge)
            return signedIn
        } catch let failure as Failure where Self.wrongPasswordReasons.contains(failure.reason) {
            guesses.failed(charge)
            throw failure
        } catch {
            // Also a call that was cancelled or whose deadline passed while the password was looked at.
            if check.mayBeGuess { guesses.failed(charge) } else { guesses.notTried(charge) }
            throw error
        }
    }

    private static var wrongPasswordReasons: Set<String> {
        ["INVALID_LOGIN_CREDENTIALS", "EMAIL_NOT_FOUND", "INVALID_PASSWORD"]
    }

    private func proof(_ email: Email, _ typed: Secret, _ check: PasswordCheck) async throws -> PasswordProof {
        let isPrivate = settings.hasEmailPrivacy
        // No account has a password of more than `passwordMax` bytes. It is answered as a wrong one and costs as much,
        // but it is a stand-in that is hashed: work over what was sent would have no bound.
        let isTooLong = typed.byteCount > limits.passwordMax
        let password = isTooLong ? Secret(project.resources.random.alphanumeric(32).bytes) : typed
        guard let account = try project.account(email: email, tenantID: tenantID) else {
            try await project.passwords.verifyDecoy(
                password, email: email, settings: settings, deadline: deadline, check: check)
            throw isPrivate ? Failure.invalidLoginCredentials : Failure.emailNotFound
        }
        guard account.hasPassword else {
            try await project.passwords.verifyDecoy(
                password, email: email, settings: settings, deadline: deadline, check: check)
            throw isPrivate ? Failure.invalidLoginCredentials : Failure.invalidPassword
        }
        let found = try await project.passwords.verify(
            password, stored: account.passwordHash, settings: settings, deadline: deadline, check: check)
        let outcome = isTooLong ? .wrong : found
        // Only whoever knows the password learns that the account is disabled.
        if outcome != .wrong, account.user.disabled { throw Failure.userDisabled }
        switch outcome {
        case .wrong: throw isPrivate ? Failure.invalidLoginCredentials : Failure.invalidPassword
        case .right: return PasswordProof(account: account, newHash: nil)
        case .rightRehashed(let hash): return PasswordProof(account: account, newHash: hash)
        }
    }
}
