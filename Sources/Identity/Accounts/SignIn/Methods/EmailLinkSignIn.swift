public import Base
import Messages
public import Rules
public import Store

/// Signing in, or up, with the code of a link that was sent to an email.
///
/// Refusals: OPERATION_NOT_ALLOWED, MISSING_EMAIL, INVALID_EMAIL, MISSING_OOB_CODE, INVALID_DISPLAY_NAME, to link
/// CREDENTIAL_TOO_OLD_LOGIN_AGAIN, then INVALID_OOB_CODE and EXPIRED_OOB_CODE.
public struct EmailLinkSignIn: AccountChoosingMethod, LinkingMethod, ReauthenticatingMethod {
    public static let name = SignInMethodName.emailLinkSignIn
    public static let methodSwitch = MethodSwitch.emailLink

    private let email: Text
    private let code: Secret

    public init(email: Text, code: Secret) {
        self.email = email
        self.code = code
    }

    /// An email whose mailbox got the code. The code is taken in the transaction of the change that it allows.
    public struct Proof: SignInProof {
        fileprivate let email: Email

        public var start: SessionStart { SessionStart("password") }
    }

    public struct Choice: AccountChoice {
        fileprivate let holder: EmailHolder?

        /// A person who proves the email of somebody else's account gets the email and not the account.
        public var uid: Text? { holder.flatMap { $0.isAnothers ? nil : $0.uid } }
    }

    public func checkOpen(_ settings: TenantSettings) throws(Failure) {
        try settings.requireAllowed(Self.methodSwitch)
    }

    public func read(_ attempt: SignInAttempt) throws -> SignInReading<Email> {
        if attempt.purpose == .reauthenticate {
            guard !code.isEmpty else { throw Failure.missingOobCode }
        } else if email.isEmpty {
            throw Failure.missingEmail
        }
        let email = try Values.email(email, form: .toFind, limits: attempt.limits)
        guard !code.isEmpty else { throw Failure.missingOobCode }
        return SignInReading(email, device: try attempt.device())
    }

    public func throttle(_ credential: Email, _ attempt: SignInAttempt) -> SignInThrottle { .provesMailbox }

    public func prove(_ credential: Email, _ attempt: SignInAttempt) async throws -> Proof {
        let stored = try attempt.resources.store.read { [now = attempt.resources.clock.now()] in
            try $0.oobCode(code, tenantID: attempt.tenantID, now: now)
        }
        guard stored.requestType == .emailSignin else { throw Failure.invalidOobCode }
        guard Email(stored: stored.email) == credential else {
            throw Failure.invalid(.invalidEmail, field: "email", "is not the address this link was sent to")
        }
        return Proof(email: credential)
    }

    public func unprovedEmail(in proof: Proof, _ attempt: SignInAttempt) -> Email? { nil }

    public func refused(
        _ failure: Failure, after proof: Proof, of credential: Email, _ attempt: SignInAttempt
    ) -> Failure { failure }

    public func choose(
        _ proof: Proof, known: Account?, settings: TenantSettings, now: Timestamp,
        in transaction: borrowing ReadTransaction
    ) throws -> Choice {
        let choice = Choice(
            holder: try transaction.holder(of: proof.email, tenantID: settings.tenantID, now: now))
        if choice.uid == nil { try settings.checkMayEnter(proof.email) }
        return choice
    }

    /// A new account, the same account, or one in which nothing unproved is left.
    public func effect(
        _ proof: Proof, _ choice: Choice, on account: Account?, _ moment: SignInMoment
    ) -> AccountEffect {
        var changed = account ?? moment.newAccount
        var removed: Text?
        if account == nil {
            changed.user.email = proof.email.address
            changed.user.emailVerified = true
        } else if !changed.user.emailVerified {
            removed = changed.keepOnlyProved(by: nil)
        }
        changed.signsInByEmailLink = true
        changed.deriveProviders()
        guard let removed else { return AccountEffect(changed) }
        return AccountEffect(changed, kind: .credentialsRemoved, detail: removed, endsSessions: .signedOut)
    }

    public func decide(
        _ proof: Proof, _ choice: Choice, on account: Account?, _ moment: SignInMoment,
        in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        try takeCode(moment, in: transaction)
        try transaction.releaseUnproved(
            proof.email.address, for: moment.key.uid, tenantID: moment.key.tenant, origin: moment.origin,
            now: moment.now)
        let decided = effect(proof, choice, on: account, moment)
        guard let account, !account.user.emailVerified else { return decided }
        return decided.takingBack(after: try transaction.reading.proofOfUnprovedEmail(account, now: moment.now))
    }

    public func refusedEndUser(_ proof: Proof) -> RefusedEndUser { RefusedEndUser(email: proof.email) }

    public func decide(
        _ proof: Proof, linkingTo account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> AccountEffect {
        if account.user.email.isEmpty { try moment.settings.checkMayEnter(proof.email) }
        try transaction.checkLinkable(proof.email, to: account)
        let linked = try account.linkingEmailLink(proof.email)
        try takeCode(moment, in: transaction)
        return AccountEffect(linked, kind: .providerLinked, detail: "emailLink")
    }

    public func checkProof(
        _ proof: Proof, of account: Account, _ moment: SignInMoment, in transaction: borrowing WriteTransaction
    ) throws -> Account {
        guard Email(stored: account.user.email) == proof.email else { throw Failure.userMismatch }
        try takeCode(moment, in: transaction)
        return account
    }

    private func takeCode(_ moment: SignInMoment, in transaction: borrowing WriteTransaction) throws {
        _ = try transaction.takeOobCode(code, .emailSignin, tenantID: moment.key.tenant, now: moment.now)
    }
}
