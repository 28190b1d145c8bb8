public import Base
import Messages
public import Rules
public import Store

/// Signing up with an email and a password, and giving a signed-in user both.
///
/// Refusals, in order: MISSING_EMAIL, MISSING_PASSWORD, OPERATION_NOT_ALLOWED, ADMIN_RESTRICTED_OPERATION,
/// INVALID_DISPLAY_NAME, INVALID_EMAIL, WEAK_PASSWORD, PASSWORD_TOO_LONG, PASSWORD_DOES_NOT_MEET_REQUIREMENTS, then for
/// a sign-up IDEMPOTENCY_KEY_REUSED, TOO_MANY_ATTEMPTS_TRY_LATER and EMAIL_EXISTS, to link
/// CREDENTIAL_TOO_OLD_LOGIN_AGAIN, PROVIDER_ALREADY_LINKED, TOO_MANY_ATTEMPTS_TRY_LATER and
/// CREDENTIAL_ALREADY_IN_USE.
public struct PasswordSignUp: AccountCreatingMethod, LinkingMethod {
    public static let name = SignInMethodName.passwordSignUp
    public static let methodSwitch = MethodSwitch.password

    private let email: Text
    private let password: Secret
    private let displayName: Text
    private let passwords: PasswordService

    public init(email: Text, password: Secret, displayName: Text, passwords: PasswordService) {
        self.email = email
        self.password = password
        self.displayName = displayName
        self.passwords = passwords
    }

    public struct Credential: Sendable {
        fileprivate let email: Email
    }

    /// A password that nobody has to prove, and its hash.
    public struct Proof: SignInProof {
        fileprivate let email: Email
        fileprivate let hash: Text

        public var start: SessionStart { SessionStart("password") }
    }

    public func checkOpen(_ settings: TenantSettings) throws(Failure) {
        if email.isEmpty { throw .missingEmail }
        if password.isEmpty { throw .missingPassword }
        try settings.requireAllowed(Self.methodSwitch)
    }

    public func read(_ attempt: SignInAttempt) throws -> SignInReading<Credential> {
        let device = try attempt.device()
        let email = try Values.email(email, form: attempt.settings.emailForm, limits: attempt.limits)
        try attempt.settings.checkNewPassword(password, limits: attempt.limits)
        if attempt.purpose == .signIn { try Values.checkDisplayName(displayName, limits: attempt.limits) }
        return SignInReading(Credential(email: email), device: device)
    }

    /// Throttles the question whether the email has an account, so that nobody can try out a list of addresses. Nothing
    /// is looked up yet, so that a free and a taken email are refused alike. A key that came with another request is
    /// refused here, where it tells nothing of the email.
    public func throttle(_ credential: Credential, _ attempt: SignInAttempt) throws -> SignInThrottle {
        let email = credential.email
        if let account = attempt.user?.account {
            _ = try account.linkingPassword(.empty, email: email, now: attempt.startedAt)
            return Email(stored: account.user.email) == email ? .unguessable : .tellsOfAccount(email)
        }
        return try attempt.isRepeated() ? .unguessable : .tellsOfAccount(email)
    }

    /// EMAIL_EXISTS comes before the costly hash; the transaction looks again.
    public func prove(_ credential: Credential, _ attempt: SignInAttempt) async throws -> Proof {
        // In this order: if this very request has taken the email, its record is found as well.
        if attempt.purpose == .signIn, try isTaken(credential.email, attempt), try !attempt.isRepeated() {
            throw Failure.emailExists
        }
        let hash = try await passwords.hash(password, attempt.passwordTurn)
        return Proof(email: credential.email, hash: hash)
    }

    public func unprovedEmail(in proof: Proof, _ attempt: SignInAttempt) -> Email? { nil }

    public func refused(
        _ failure: Failure, after proof: Proof, of credential: Credential, _ attempt: SignInAttempt
    ) -> Failure { failure }

    public func decide(_ proof: Proof, making account: Account, now: Timestamp) -> Account {
        var account = account
        account.user.email = proof.email.address
        account.user.displayName = displayName
        account.passwordHash = proof.hash
        account.passwordUpdatedAt = now
        account.deriveProviders()
        return account
    }

    public func refusedEndUser(_ limits: Limits) -> RefusedEndUser {
        RefusedEndUser(email: Email(email, form: .toFind, limits: limits))
    }

    public func decide(
        _ proof: Proof, linkingTo account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        let linked = try account.linkingPassword(proof.hash, email: proof.email, now: moment.now)
        try transaction.checkLinkable(proof.email, to: account)
        return AccountEffect(linked, kind: .providerLinked, detail: "password")
    }

    private func isTaken(_ email: Email, _ attempt: SignInAttempt) throws -> Bool {
        try attempt.resources.store.read { try $0.uid(ofEmail: email, tenantID: attempt.tenantID) != nil }
    }
}

extension TenantSettings {
    /// Checks a password that an end user chooses. WEAK_PASSWORD, PASSWORD_TOO_LONG,
    /// PASSWORD_DOES_NOT_MEET_REQUIREMENTS.
    public func checkNewPassword(_ password: Secret, limits: Limits) throws {
        try Values.checkNewPassword(password, limits: limits)
        try passwordPolicy.require(password)
    }
}

extension WriteTransaction {
    /// CREDENTIAL_ALREADY_IN_USE for an email that another account has.
    func checkLinkable(_ email: Email, to account: Account) throws {
        let owner = try reading.uid(ofEmail: email, tenantID: account.user.tenantID)
        guard owner == nil || owner == account.user.uid else {
            throw Failure.credentialInUse(detail: .emailExists)
        }
    }
}
