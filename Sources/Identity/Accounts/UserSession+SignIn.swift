import Base
import Crypto
import Messages
public import Rules
public import Store
public import Tokens

extension UserSession {
    /// Throws where the account, nil where there is none, is not the one that the user signs in to. Changes nothing.
    typealias AccountConfirmation = @Sendable (borrowing WriteTransaction, Account?) throws -> Void

    /// Signs this user in after a credential was proved; creates the account when there is none, and passes nil to
    /// `decide` then.
    ///
    /// The checks of every way to sign in are made here: the tenant is open and has the method switched on
    /// (`WriteTransaction.settings(openTo:of:)`), a disabled account is not signed in to or changed (USER_DISABLED),
    /// and no account is created where end users may not sign up (`SelfServiceRefusal`). The tenant's present settings
    /// decide whether they may, and whether a second factor is needed. `confirm` and, after these checks, `decide` run
    /// inside the transaction. `confirm` throws where the account is not the one to sign in to, and changes nothing;
    /// `decide` may write what belongs to the credential (a used code). When anything throws, nothing is written.
    ///
    /// Throws `SignInPending` for a sign-in that waits for a second factor. Its change of the account is kept until the
    /// sign-in is finished; a code that the credential used up stays used up.
    ///
    /// `hooks`: the changes to the account that the tenant's hooks ask for. If they disable the user, the account is
    /// created or changed, and the user is refused with USER_DISABLED. An account whose second factor was not shown is
    /// disabled and not changed otherwise.
    func signIn(
        _ first: FirstFactor, hooks: HookAnswer = HookAnswer(), _ request: EndUserRequest,
        confirming confirm: @escaping AccountConfirmation = { _, _ in },
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account?) throws -> AccountEffect
    ) async throws -> SignedIn {
        let (settings, origin, now) = (request.settings, request.origin, resources.clock.now())
        let sessionID = SessionID.make(at: now, random: resources.random)
        let pendingID = resources.random.bytes(PendingSignIns.idByteCount)
        let (key, sessionsMax) = (self.key, resources.limits.sessionsPerUserMax)
        let begin = beginning(request.settings, deadline: request.deadline)
        return try await answeringRepeat(of: request) {
            let issue = try await writeIssuing { issue in
                issue.map { ($0.isNew, begin(SessionGrant(beginning: $0.session, of: $0.account.user), now)) }
            } body: { transaction -> SignInIssue<(account: Account, isNew: Bool, session: BegunSession)> in
                try transaction.issuingUnlessRepeated(session: sessionID, origin, now: now) {
                    let present = try transaction.settings(openTo: first, of: key.tenant)
                    let decided = try transaction.decideSignIn(
                        to: key, settings: settings, present: present, confirm
                    ) { try decide($0, $1).changed(by: hooks) }
                    let step = SecondFactorStep.decide(for: decided.effect.account, after: first, settings: present)
                    if hooks.isDisabled {
                        try transaction.disable(decided, at: step, origin: origin, now: now)
                        return .refused(.userDisabled)
                    }
                    switch step {
                    case .waits(let kind):
                        return .waits(
                            try transaction.wait(
                                for: kind, decided, first, id: pendingID, origin: origin, settings: settings, now: now))
                    case .notNeeded(let login):
                        let account = try transaction.apply(
                            decided, address: decided.newlyKnownAddress(origin.device), origin: origin, now: now)
                        let session = BegunSession(login, id: sessionID, of: key, on: origin.device, now: now)
                        try transaction.insertSession(
                            session.record, id: sessionID, sessionsMax: sessionsMax, settings: settings, now: now)
                        return .tokens((account, decided.current == nil, session))
                    }
                }
            }
            let (isNew, begun) = try issue.value()
            return SignedIn(begun.grant, tokens: try await issuer.tokens(begun), isNewUser: isNew)
        }
    }

    /// Changes the account within the live session of `token`, which goes on with new tokens.
    ///
    /// A change that ends sessions keeps this session, but only its new tokens (decision 0021). After any other change
    /// older ID tokens stay good until they expire, and the previous refresh token has its grace. Whether `token` is
    /// alive is checked again inside the transaction: its session may have ended while a password was hashed.
    public func change(
        by token: VerifiedToken, _ request: EndUserRequest,
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> AccountEffect
    ) async throws -> SignedIn {
        try await change(by: token, proving: nil, startsAnew: false, request, decide)
    }

    /// Changes the account as above, for a user who has just proved `first`, if its method is still switched on. With
    /// `startsAnew` the time of the session's login becomes now.
    func change(
        by token: VerifiedToken, proving first: FirstFactor?, startsAnew: Bool, _ request: EndUserRequest,
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> AccountEffect
    ) async throws -> SignedIn {
        let (key, clock) = (key, resources.clock)
        let (settings, origin) = (request.settings, request.origin)
        let sessionID = token.sessionID
        let begin = beginning(request.settings, deadline: request.deadline)
        let pendingID = resources.random.bytes(PendingSignIns.idByteCount)
        return try await answeringRepeat(of: request) {
            let issue = try await writeIssuing { issue in
                issue.map { begin(SessionGrant($0.session, goingOnAfterChangeBy: token, of: $0.user), $0.time) }
            } body: { transaction -> SignInIssue<(user: User, session: StoredSession, time: Timestamp)> in
                // The grace of the previous refresh token begins in this run, however long the write has waited.
                let now = clock.now()
                return try transaction.issuingUnlessRepeated(session: sessionID, origin, now: now) {
                    var present: TenantSettings?
                    if let first { present = try transaction.settings(openTo: first, of: key.tenant) }
                    let (current, alive) = try transaction.reading.signedIn(
                        key, by: token, settings: settings, now: now)
                    let decided = DecidedSignIn(key: key, current: current, effect: try decide(transaction, current))
                    var session = alive
                    session.goOn(decided.effect, origin: origin, now: now)
                    if startsAnew, let first, let present {
                        switch SecondFactorStep.decide(for: decided.effect.account, after: first, settings: present) {
                        case .waits(let kind):
                            return .waits(
                                try transaction.wait(
                                    for: kind, decided, first, id: pendingID, session: sessionID, origin: origin,
                                    settings: settings, now: now))
                        case .notNeeded(let login):
                            session.move(to: login, of: decided.effect.account.user, now: now)
                        }
                    }
                    let account = try transaction.apply(
                        decided.effect, to: current, keeping: sessionID, origin: origin, now: now)
                    try transaction.put(Tables.sessions, SessionKey(sessionID), session)
                    return .tokens((account.user, session, now))
                }
            }
            let begun = try issue.value()
            return SignedIn(begun.grant, tokens: try await issuer.tokens(begun))
        }
    }
}

extension UserSession {
    /// Changes the account by what a code proved. A disabled account may be changed and stays disabled: its owner has
    /// the mailbox, but cannot sign in. INVALID_OOB_CODE when the account is gone.
    ///
    /// Returns the answer, which must hold no secret, and the changed user. If the same request was done before, the
    /// answer is that of then, and the user is nil.
    func applyCode<Answer: Message>(
        origin: Origin, answering answer: @escaping @Sendable (User) -> Answer,
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> AccountEffect
    ) async throws -> (answer: Answer, changed: User?) {
        let (key, clock) = (key, resources.clock)
        return try await write { transaction in
            // The time of this run: device tokens of sign-ins that came before it must not count for a new password.
            let now = clock.now()
            var changed: User?
            let given = try transaction.answeringRepeat(of: origin, now: now) {
                guard let current = try transaction.reading.account(key) else { throw Failure.invalidOobCode }
                let effect = try decide(transaction, current)
                let user = try transaction.apply(effect, to: current, keeping: nil, origin: origin, now: now).user
                changed = user
                return answer(user)
            }
            return (given, changed)
        }
    }
}
