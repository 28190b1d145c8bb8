public import Base
import Messages
public import Rules
public import Store

/// Signing in with an email and a password.
///
/// Refusals, in order: PASSWORD_LOGIN_DISABLED, INVALID_DISPLAY_NAME, MISSING_EMAIL, INVALID_EMAIL, MISSING_PASSWORD,
/// TOO_MANY_ATTEMPTS_TRY_LATER, INVALID_LOGIN_CREDENTIALS (or, without email-enumeration protection, EMAIL_NOT_FOUND
/// and INVALID_PASSWORD), USER_DISABLED (only after the right password), PASSWORD_DOES_NOT_MEET_REQUIREMENTS.
public struct PasswordSignIn: AccountChoosingMethod, ReauthenticatingMethod {
    public static let name = SignInMethodName.passwordSignIn
    public static let methodSwitch = MethodSwitch.password

    private let email: Text
    private let password: Secret
    private let passwords: PasswordService

    public init(email: Text, password: Secret, passwords: PasswordService) {
        self.email = email
        self.password = password
        self.passwords = passwords
    }

    public struct Credential: Sendable {
        fileprivate let email: Email
    }

    /// A password found right: its account, and a hash under the present profile where the stored one is outdated.
    public struct Proof: SignInProof {
        let account: Account
        let newHash: Text?

        public var start: SessionStart { SessionStart("password") }
    }

    public func checkOpen(_ settings: TenantSettings) throws(Failure) {
        guard settings.allows(Self.methodSwitch) else { throw .passwordLoginDisabled }
    }

    public func read(_ attempt: SignInAttempt) throws -> SignInReading<Credential> {
        let device = try attempt.device()
        if email.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(email, form: .toFind, limits: attempt.limits)
        if password.isEmpty { throw Failure.missingPassword }
        return SignInReading(Credential(email: email), device: device)
    }

    public func throttle(_ credential: Credential, _ attempt: SignInAttempt) -> SignInThrottle {
        .password(credential.email, deviceToken: attempt.request.deviceToken)
    }

    public func prove(_ credential: Credential, _ attempt: SignInAttempt) async throws -> Proof {
        let proof = try await proof(of: credential.email, attempt)
        if attempt.purpose == .signIn, attempt.settings.passwordPolicy.forceUpgradeOnSignIn {
            try attempt.settings.passwordPolicy.require(password)
        }
        return proof
    }

    public func unprovedEmail(in proof: Proof, _ attempt: SignInAttempt) -> Email? { nil }

    public func refused(
        _ failure: Failure, after proof: Proof, of credential: Credential, _ attempt: SignInAttempt
    ) -> Failure { failure }

    public func choose(
        _ proof: Proof, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) -> NamedAccount { NamedAccount(uid: proof.account.user.uid) }

    /// A password that changed, or a user who was disabled, while the hash was computed does not get in.
    public func effect(
        _ proof: Proof, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment
    ) throws -> AccountEffect {
        guard var account else { throw AccountMoved(proofIsOld: true) }
        try account.requirePassword(of: proof.account)
        if let newHash = proof.newHash { account.passwordHash = newHash }
        return AccountEffect(account)
    }

    public func decide(
        _ proof: Proof, _ choice: NamedAccount, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect { try effect(proof, choice, on: account, moment) }

    public func refusedEndUser(_ proof: Proof) -> RefusedEndUser { RefusedEndUser(uid: proof.account.user.uid) }

    public func checkProof(
        _ proof: Proof, of account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> Account {
        guard proof.account.user.uid == account.user.uid else { throw Failure.userMismatch }
        try account.requirePassword(of: proof.account)
        return account
    }
}

extension PasswordSignIn {
    /// A caller who does not know the password learns nothing: an unknown address takes as much work and gets the same
    /// answer.
    private func proof(of email: Email, _ attempt: SignInAttempt) async throws -> Proof {
        let (turn, check) = (attempt.passwordTurn, attempt.passwordCheck)
        let isPrivate = attempt.settings.hasEmailPrivacy
        // No account has a password of more than `passwordMax` bytes. A longer one is answered as a wrong password and
        // costs as much. A stand-in is hashed for it, because the work for the sent password would have no bound.
        let isTooLong = password.byteCount > attempt.limits.passwordMax
        let password = isTooLong ? Secret(attempt.resources.random.alphanumeric(32).bytes) : password
        let account = try attempt.resources.store.read { try $0.account(email: email, tenantID: attempt.tenantID) }
        guard let account, account.hasPassword else {
            try await passwords.verifyDecoy(password, email: email, turn, check: check)
            if isPrivate { throw Failure.invalidLoginCredentials }
            throw account == nil ? Failure.emailNotFound : .invalidPassword
        }
        let found = try await passwords.verify(password, stored: account.passwordHash, turn, check: check)
        let outcome = isTooLong ? .wrong : found
        // Only a caller who knows the password learns that the account is disabled.
        if outcome != .wrong, account.user.disabled { throw Failure.userDisabled }
        switch outcome {
        case .wrong: throw isPrivate ? Failure.invalidLoginCredentials : Failure.invalidPassword
        case .right: return Proof(account: account, newHash: nil)
        case .rightRehashed(let hash): return Proof(account: account, newHash: hash)
        }
    }
}
