public import Base
import Crypto
public import Messages
import Reactor
public import Rules
import Store
public import Tokens

/// The owner of one active user: every change of its account and of its sessions goes through here, one after the
/// other, in the order in which they came. A change begins when the previous one is committed or refused.
///
/// Made on demand by the `UserDirectory`, on the event loop that asks for it, and gone when nobody uses it.
/// It keeps no copy of the account: each change is decided by a pure rule inside the write transaction, over what is
/// committed at that moment, because another node may have been first.
///
/// A write that changes many users (`UserDirectory.changing`) takes the turns of all of them.
public actor UserSession {
    public nonisolated let tenantID: Text
    public nonisolated let uid: Text
    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    nonisolated let resources: Resources
    nonisolated let issuer: TokenIssuer
    nonisolated var key: UserKey { UserKey(tenantID, uid) }
    private var turns = TurnQueue()

    init(tenantID: Text, uid: Text, resources: Resources, issuer: TokenIssuer, loop: EventLoop) {
        self.tenantID = tenantID
        self.uid = uid
        self.resources = resources
        self.issuer = issuer
        self.loop = loop
    }

    // MARK: The order of changes

    /// The only way from here to the store: runs a write when this user's earlier writes are done.
    func write<Value: Sendable>(
        for purpose: WritePurpose = .growth, mayBePutOff: Bool = false,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value
    ) async throws -> Value {
        await takeTurn()
        defer { turns.pass() }
        return try await resources.store.write(for: purpose, mayBePutOff: mayBePutOff, body)
    }

    /// A write that decides which session gets tokens. They are begun while it is committed, and handed out after it.
    func writeIssuing<Value: Sendable, Begun: Sendable>(
        _ begin: @escaping @Sendable (Value) -> Begun,
        body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value
    ) async throws -> Begun {
        await takeTurn()
        defer { turns.pass() }
        return try await resources.store.write(for: .session, mayBePutOff: true, preparing: begin, body)
    }

    /// Begins the tokens of a session, on any thread, for the call that makes this.
    func beginning(
        _ settings: TenantSettings, deadline: Instant
    ) -> @Sendable (SessionGrant, Timestamp) -> BegunTokens {
        let (issuer, trace) = (issuer, CallTrace.current)
        return { issuer.begin(for: $0, settings: settings, now: $1, deadline: deadline, trace: trace) }
    }

    /// Waits for this user's turn, for a write about several users (`UserDirectory.changing`).
    func takeTurn() async {
        // A turn only ever succeeds.
        if let turn = turns.take() { _ = try? await turn.value() }
    }

    func passTurn() { turns.pass() }

    /// How many changes wait for the running one.
    var waitingCount: Int { turns.waitingCount }

    // MARK: Coming into being and signing in

    /// Creates the account and its first session. The tokens are signed before the commit, so that a full signing pool
    /// does not leave behind an account without an answer to its user.
    func signUp(
        _ account: Account, _ first: FirstFactor, hooks: HookAnswer = HookAnswer(), _ request: EndUserRequest
    ) async throws -> SignedIn {
        let (device, now) = (request.origin.device, resources.clock.now())
        if hooks.isDisabled {
            // The sign-in refuses the user.
            return try await signIn(making: AccountEffect(account), first, hooks: hooks, request)
        }
        var effect = AccountEffect(account).changed(by: hooks)
        if let address = device.addressHash { effect.account.knownAddresses.remember(address) }
        let id = SessionID.make(at: now, random: resources.random)
        if case .notNeeded(let login) = SecondFactorStep.decide(
            for: effect.account, after: first, settings: request.settings)
        {
            do {
                return try await signUp(
                    effect, first, BegunSession(login, id: id, of: key, on: device, now: now), request, now: now)
            } catch is SecondFactorWanted {}
        }
        // The sign-in waits for the second factor.
        return try await signIn(making: effect, first, hooks: HookAnswer(), request)
    }

    /// A sign-in that makes the account, for the outcomes that a sign-up does not have.
    private func signIn(
        making effect: AccountEffect, _ first: FirstFactor, hooks: HookAnswer, _ request: EndUserRequest
    ) async throws -> SignedIn {
        try await signIn(first, hooks: hooks, request) { _, current in
            guard current == nil else { throw Failure.duplicateUID }
            return effect
        }
    }

    /// Throws `SecondFactorWanted` if the tenant asks for one by now. Throws `SelfServiceRefusal` if end users may not
    /// sign up any more, and the refusals of `settings(openTo:of:)`.
    private func signUp(
        _ effect: AccountEffect, _ first: FirstFactor, _ session: BegunSession, _ request: EndUserRequest,
        now: Timestamp
    ) async throws -> SignedIn {
        let account = effect.account
        let (settings, origin) = (request.settings, request.origin)
        let grant = SessionGrant(beginning: session, of: account.user)
        let tokens = try await issuer.tokens(for: grant, settings: settings, now: now, deadline: request.deadline)
        let (key, sessionsMax) = (key, resources.limits.sessionsPerUserMax)
        return try await answeringRepeat(of: request) {
            _ = try await write { transaction in
                try transaction.issuingUnlessRepeated(session: session.id, origin, now: now) {
                    let present = try transaction.settings(openTo: first, of: key.tenant)
                    try SelfService.checkSignUp(present)
                    guard case .notNeeded = SecondFactorStep.decide(for: account, after: first, settings: present)
                    else { throw SecondFactorWanted() }
                    try transaction.insert(account, origin: origin, now: now)
                    try transaction.noteIfAnonymous(account)
                    try transaction.noteHookChanges(effect, origin: origin, now: now)
                    try transaction.insertSession(
                        session.record, id: session.id, sessionsMax: sessionsMax, settings: settings, now: now)
                    return .tokens(())
                }
            }
            return SignedIn(grant, tokens: tokens)
        }
    }

    // MARK: Refreshing

    /// Rotates a refresh token; see `StoredSession.refreshing` for what happens to a used one.
    ///
    /// The commit comes first: an answer that is lost after it can be asked for again with the same `attemptID`.
    public func refresh(
        _ token: RefreshToken, attemptID: [UInt8], settings: TenantSettings, deadline: Instant
    ) async throws -> (signedIn: SignedIn, outcome: RefreshOutcome) {
        let (key, clock) = (key, resources.clock)
        let attemptHash = attemptID.isEmpty ? [] : Digest.sha256(attemptID)
        // Each of two nodes may be that far from the engine's time.
        let clockDifference = resources.store.isInCluster ? resources.limits.journal.clockDifferenceMax * 2 : .zero
        let beginTokens = beginning(settings, deadline: deadline)
        let begin = { @Sendable (decided: DecidedRefresh) in
            decided.decision.issuing { beginTokens(SessionGrant(decided, of: token), decided.time) }
        }
        let unwritten = try refreshWithoutWriting(token, attemptHash: attemptHash, settings: settings)
        let issued =
            if let unwritten {
                begin(unwritten)
            } else {
                try await writeIssuing(begin) { transaction in
                    // The clock is read in each run, because the age of a rotation by another node is judged by it.
                    try transaction.refresh(
                        token, of: key, attemptHash: attemptHash, settings: settings, now: clock.now(),
                        clockDifference: clockDifference)
                }
            }
        let (begun, outcome) = try issued.get()
        return (SignedIn(begun.grant, tokens: try await issuer.tokens(begun)), outcome)
    }

    /// A refresh that has nothing to write, as most have where tokens are reused. Nil where something is, or may be,
    /// written.
    private func refreshWithoutWriting(
        _ token: RefreshToken, attemptHash: [UInt8], settings: TenantSettings
    ) throws -> DecidedRefresh? {
        // In a cluster the end of the journal decides: it may hold another node's revocation that this node has not
        // read yet.
        guard settings.refreshMode == .reuse, !resources.store.isInCluster else { return nil }
        let decided = try resources.store.read { transaction in
            try transaction.refresh(
                token, of: key, attemptHash: attemptHash, settings: settings, now: resources.clock.now(),
                clockDifference: .zero)
        }
        return decided.decision.changed == nil ? decided : nil
    }

    // MARK: Changes by the user

    /// Applies a change that signs nobody out. With `validateOnly` it only checks the change, which may be any. The
    /// user's token is checked again inside the transaction.
    public func update(
        _ change: ProfileChange, by asker: VerifiedUser, origin: Origin, validateOnly: Bool
    ) async throws -> User {
        let now = resources.clock.now()
        let key = key
        return try await write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                let current = try transaction.reading.account(of: asker, now: now)
                var changed = current
                try change.apply(to: &changed, now: now)
                try transaction.checkUnique(changed, key: key)
                if !validateOnly {
                    try transaction.replace(
                        current, by: changed, origin: origin, kind: .userUpdated, detail: change.fieldNames, now: now)
                }
                return changed.user
            }
        }
    }

    /// Deletes the account and everything of it. `asker`: the user, whose token and whose permission to delete the
    /// account (`SelfServiceRefusal`) are checked again inside the transaction; nil for an admin.
    public func delete(by asker: VerifiedUser? = nil, origin: Origin, validateOnly: Bool) async throws {
        let now = resources.clock.now()
        let key = key
        try await write(for: .removal) { transaction in
            if validateOnly {
                guard try transaction.reading.account(key) != nil else { throw Failure.userNotFound }
                return
            }
            _ = try transaction.answeringRepeat(of: origin, now: now) {
                if let asker {
                    _ = try transaction.reading.account(of: asker, now: now)
                    try SelfService.checkDeletion(transaction.currentSettings(of: key.tenant))
                }
                guard let account = try transaction.reading.account(key) else { throw Failure.userNotFound }
                try transaction.remove(account, origin: origin, now: now)
                return UsersDeleteResponse()
            }
        }
    }

    // MARK: Changes by an admin

    /// Creates the account. `isUIDChosen`: the caller chose the uid, so that it may have been another account's.
    public func create(
        _ account: Account, isUIDChosen: Bool, origin: Origin, validateOnly: Bool
    ) async throws -> User {
        let now = resources.clock.now()
        return try await write { transaction in
            if validateOnly {
                try transaction.checkInsertable(account)
                return account.user
            }
            return try transaction.answeringRepeat(of: origin, now: now) {
                if isUIDChosen { return try transaction.insertUnderChosenUID(account, origin: origin, now: now).user }
                try transaction.insert(account, origin: origin, now: now)
                return account.user
            }
        }
    }

    /// Applies `change`. A new password, a new email or disabling ends every session.
    public func administer(_ change: AdminChange, origin: Origin, validateOnly: Bool) async throws -> User {
        let (key, clock) = (key, resources.clock)
        return try await write { transaction in
            // The time of this run: device tokens of sign-ins that came before it must not count for a new password.
            let now = clock.now()
            if validateOnly {
                let (_, changed, _) = try transaction.administered(key, change, now: now)
                try transaction.checkUnique(changed, key: key)
                return changed.user
            }
            return try transaction.answeringRepeat(of: origin, now: now) {
                try transaction.administer(key, change, origin: origin, now: now)
            }
        }
    }
}

extension RefreshDecision {
    /// What `make` makes for a token that is not refused, and how it was accepted. TOKEN_EXPIRED with its cause.
    fileprivate func issuing<Made>(_ make: () -> Made) -> Result<(Made, RefreshOutcome), Failure> {
        switch self {
        case .rotated: .success((make(), .rotated))
        case .repeatedAfterLoss: .success((make(), .repeatedAfterLoss))
        case .repeatedWithinGrace: .success((make(), .repeatedWithinGrace))
        case .reused, .reusedAgain: .success((make(), .reused))
        case .revokedByReuse: .failure(.tokenExpired(cause: .revokedByReuse))
        case .refused(let cause): .failure(.tokenExpired(cause: cause))
        }
    }
}
