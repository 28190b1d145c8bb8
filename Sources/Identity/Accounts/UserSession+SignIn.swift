public import Base
import Crypto
import Messages
public import Rules
public import Store
public import Tokens

extension UserSession {
    /// Signs this user in after a credential was proved; creates the account where `decide` is given none.
    ///
    /// The checks that hold for every way in stand here: a disabled account is not entered or changed (USER_DISABLED),
    /// and nobody comes into being where end users may not sign up (`SelfServiceRefusal`). `decide` runs inside the
    /// transaction and may write what belongs to the credential (a used code); when anything throws nothing is written.
    func signIn(
        _ first: FirstFactor, settings: TenantSettings, origin: Origin, deadline: Instant,
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account?) throws -> AccountEffect
    ) async throws -> SignedIn {
        let now = resources.clock.now()
        let sessionID = SessionID.make(at: now, random: resources.random)
        let key = key
        let limits = resources.limits
        let entered: (account: Account, isNew: Bool, session: BegunSession)
        do {
            entered = try await write(for: .session, mayBePutOff: true) { transaction in
                try transaction.onceIssuing(session: sessionID, origin, now: now) {
                    let (account, isNew) = try transaction.enter(
                        key, settings: settings, origin: origin, now: now, decide)
                    switch SecondFactor.decide(for: account, after: first, settings: settings) {
                    case .notNeeded(let login):
                        let session = BegunSession(login, id: sessionID, of: key, on: origin.device, now: now)
                        try transaction.insertSession(
                            session.record, id: sessionID, sessionsMax: limits.sessionsPerUserMax, settings: settings,
                            now: now)
                        return (account, isNew, session)
                    }
                }
            }
        } catch let repeated as RepeatedSession {
            return try await signedInAgain(repeated, settings: settings, deadline: deadline)
        }
        let tokens = try await issuer.tokens(
            for: SessionGrant(beginning: entered.session, of: entered.account.user), settings: settings, now: now,
            deadline: deadline)
        return SignedIn(user: entered.account.user, tokens: tokens, isNewUser: entered.isNew)
    }

    /// Changes the account within the live session of `token`, which goes on with new tokens.
    ///
    /// A change that ends sessions leaves this one alone, and of its tokens only the new ones (decision 0021). After
    /// any other change older ID tokens stay good until they expire, and the refresh token of before has its grace.
    /// Whether `token` is alive is asked again inside the transaction: it may have ended while a password was hashed.
    ///
    public func change(
        by token: VerifiedToken, settings: TenantSettings, origin: Origin, deadline: Instant,
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> AccountEffect
    ) async throws -> SignedIn {
        try await change(
            by: token, provingAs: nil, settings: settings, origin: origin, deadline: deadline, decide)
    }

    /// The same by a user who has just proved a credential: with `first` the session's login is as recent as now.
    func change(
        by token: VerifiedToken, provingAs first: FirstFactor?, settings: TenantSettings, origin: Origin,
        deadline: Instant,
        _ decide: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> AccountEffect
    ) async throws -> SignedIn {
        let now = resources.clock.now()
        let key = key
        let sessionID = token.sessionID
        let changed: (user: User, session: StoredSession)
        do {
            changed = try await write(for: .session, mayBePutOff: true) { transaction in
                try transaction.onceIssuing(session: sessionID, origin, now: now) {
                    let (current, alive) = try transaction.reading.signedIn(
                        key, by: token, settings: settings, now: now)
                    let effect = try decide(transaction, current)
                    var session = alive
                    session.goOn(effect, origin: origin, now: now)
                    if let first {
                        switch SecondFactor.decide(for: effect.account, after: first, settings: settings) {
                        case .notNeeded(let login): session.move(to: login, now: now)
                        }
                    }
                    let account = try transaction.apply(
                        effect, to: current, keeping: sessionID, origin: origin, now: now)
                    try transaction.put(Tables.sessions, SessionKey(sessionID), session)
                    return (account.user, session)
                }
            }
        } catch let repeated as RepeatedSession {
            return try await signedInAgain(repeated, settings: settings, deadline: deadline)
        }
        let tokens = try await issuer.tokens(
            for: SessionGrant(changed.session, goingOnAfterChangeBy: token, of: changed.user), settings: settings,
            now: now, deadline: deadline)
        return SignedIn(user: changed.user, tokens: tokens)
    }
}

extension UserSession {
    /// Changes the account by what a code proved. A disabled account stays disabled, and may be changed: its owner has
    /// the mailbox, and gets nowhere by it. INVALID_OOB_CODE when the account is gone.
    func applyCode(
        origin: Origin, _ decide: @escaping @Sendable (borrowing WriteTransaction, Account) throws -> AccountEffect
    ) async throws -> User {
        let now = resources.clock.now()
        let key = key
        return try await write { transaction in
            guard let current = try transaction.reading.account(key) else { throw Failure.invalidOobCode }
            let effect = try decide(transaction, current)
            return try transaction.apply(effect, to: current, keeping: nil, origin: origin, now: now).user
        }
    }
}

extension StoredSession {
    /// The refresh token is a new one.
    fileprivate mutating func goOn(_ effect: AccountEffect, origin: Origin, now: Timestamp) {
        rotate(attemptHash: origin.idempotency?.attemptHash ?? [], effect.refreshCause, now: now)
        if let end = effect.endsOlderTokens { endOlderTokens(end) }
    }

    /// The login is a new one.
    fileprivate mutating func move(to login: ProvedLogin, now: Timestamp) {
        authTimeMicros = now.microseconds
        signInProvider = login.start.provider
        // A custom token's claims are the session's until another custom token brings its own.
        if !login.start.claims.isEmpty { claimsJSON = login.start.claims }
    }
}

extension ReadTransaction {
    /// An account that may be changed, and its session, which lives.
    fileprivate func signedIn(
        _ key: UserKey, by token: VerifiedToken, settings: TenantSettings, now: Timestamp
    ) throws -> (account: Account, session: StoredSession) {
        guard let account = try account(key) else { throw Failure.userNotFound }
        if account.user.disabled { throw Failure.userDisabled }
        guard let session = try get(Tables.sessions, SessionKey(token.sessionID)), session.uid == key.uid,
            session.tenantID == key.tenant
        else { throw Failure.invalidIDToken }
        if let cause = session.refusedCause(settings: settings, now: now) {
            throw Failure.tokenExpired(cause: cause)
        }
        guard token.generation >= account.user.tokensValidAfterMicros else {
            throw Failure.tokenExpired(revokedFor: account.tokensRevokedFor)
        }
        return (account, session)
    }
}

extension WriteTransaction {
    fileprivate func enter(
        _ key: UserKey, settings: TenantSettings, origin: Origin, now: Timestamp,
        _ decide: (borrowing WriteTransaction, Account?) throws -> AccountEffect
    ) throws -> (account: Account, isNew: Bool) {
        let current = try reading.account(key)
        if let current {
            if current.user.disabled { throw Failure.userDisabled }
            var effect = try decide(self, current)
            // Whoever came by a custom token has a way to come again.
            if current.hasNoWayIn { try delete(Tables.anonymousUsers, key) }
            effect.account.user.lastSignInAtMicros = now.microseconds
            if let address = origin.device.addressHash { effect.account.knownAddresses.remember(address) }
            return (try apply(effect, to: current, keeping: nil, origin: origin, now: now), false)
        }
        var effect = try decide(self, nil)
        if let address = origin.device.addressHash { effect.account.knownAddresses.remember(address) }
        if let toggle = SelfService.refusalOfSignUp(settings) { throw SelfServiceRefusal(toggle: toggle) }
        countsAsGrowth()
        try insert(effect.account, origin: origin, now: now)
        return (effect.account, true)
    }

    fileprivate func apply(
        _ effect: AccountEffect, to current: Account, keeping sessionID: [UInt8]?, origin: Origin, now: Timestamp
    ) throws -> Account {
        var changed = effect.account
        if let end = effect.endsSessions { changed.revokeTokens(end, now: now) }
        try replace(
            current, by: changed, origin: origin, kind: effect.kind, detail: effect.detail, now: now)
        if let end = effect.endsSessions {
            try endSessions(of: UserKey(changed.user.tenantID, changed.user.uid), except: sessionID, end, now: now)
        }
        return changed
    }
}
