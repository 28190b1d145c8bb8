import Base
import Crypto
import Messages
import Rules
import Store
import Tokens

// The writes of a sign-in to the account and to the session, inside of its transaction.

/// A sign-in whose first factor is proved: its account, and the effect on that account.
struct DecidedSignIn {
    let key: UserKey
    /// Nil for an account that the sign-in makes.
    let current: Account?
    let effect: AccountEffect

    /// Whether a sign-in that waits for a factor changes its account. The note that the user showed a custom token does
    /// not count: it is made when the sign-in is finished (`finish`), whatever else was changed by then.
    fileprivate var changesAccount: Bool {
        guard let current else { return false }
        var changed = effect.account
        changed.signsInByCustomToken = current.signsInByCustomToken
        return changed != current
    }

    /// The address that becomes known by a sign-in without a second factor; nil where the user has one, because
    /// somebody who has only the password must not get a budget of guesses at it for each address (decision 0058).
    func newlyKnownAddress(_ device: Origin.Device) -> UInt64? {
        effect.account.user.secondFactors.isEmpty ? device.addressHash : nil
    }
}

extension StoredSession {
    /// Goes on with a new refresh token.
    mutating func goOn(_ effect: AccountEffect, origin: Origin, now: Timestamp) {
        rotate(attemptHash: origin.idempotency?.attemptHash ?? [], effect.refreshCause, now: now)
        if let end = effect.endsOlderTokens { endOlderTokens(end) }
    }

    /// Gives the session a new login. `user` has the factors that are left after it.
    mutating func move(to login: ProvedLogin, of user: User, now: Timestamp) {
        authTimeMicros = now.microseconds
        signInProvider = login.start.provider
        // A custom token's claims are the session's until the next custom token. A token without claims takes them
        // away. The claims that a hook gave the session stay: no hook is asked for a reauthentication.
        if login.start.provider == SessionStart.customToken {
            claimsJSON = HookAnswer.merged(hookClaimsJSON, into: login.start.claims)
        }
        // Where no factor was asked for, the session keeps the factor that it showed before.
        if let factor = login.factor { note(factor, of: user) }
    }
}

extension ReadTransaction {
    /// The account of a user whose token is still good.
    func account(of user: VerifiedUser, now: Timestamp) throws -> Account {
        try signedIn(user.account.key, by: user.token, settings: user.settings, now: now).account
    }

    /// The account of a token, which may be changed, and its live session.
    func signedIn(
        _ key: UserKey, by token: VerifiedToken, settings: TenantSettings, now: Timestamp
    ) throws -> (account: Account, session: StoredSession) {
        guard let account = try account(key) else { throw Failure.userNotFound }
        if account.user.disabled { throw Failure.userDisabled }
        guard let session = try storedSession(token.sessionID, of: key) else { throw Failure.invalidIDToken }
        if let cause = session.refusedCause(settings: settings, now: now) {
            throw Failure.tokenExpired(cause: cause)
        }
        try token.origin.checkGeneration(of: account)
        return (account, session)
    }
}

extension WriteTransaction {
    /// The tenant's present settings, if they allow an end user to begin a session, or to go on with a session, by this
    /// first factor. Every sign-in, sign-up, link and reauthentication reads them here, before it changes anything.
    ///
    /// TENANT_NOT_FOUND, TENANT_SUSPENDED, PROJECT_DISABLED, and the refusal of `SignInMethod.checkOpen`: an admin may
    /// have closed the tenant or switched the method off since the call was admitted.
    func settings(openTo first: FirstFactor, of tenantID: Text) throws -> TenantSettings {
        let present = try currentSettings(of: tenantID)
        try present.requireOpenToEndUsers()
        try first.method.checkOpen(present)
        return present
    }

    /// Decides what a sign-in does to the account, and changes nothing of it yet. USER_DISABLED, `SelfServiceRefusal`.
    ///
    /// `confirm` throws if the account is not the one that the user signs in to. `decide` is called after every check
    /// here, because it uses up the credential: a body that throws after a change makes its whole batch run again.
    ///
    /// `settings` are the call's, `present` those of this transaction. An account is made only where end users may sign
    /// up by both: no hook was asked about a sign-up that the call's settings refuse.
    func decideSignIn(
        to key: UserKey, settings: TenantSettings, present: TenantSettings,
        _ confirm: (borrowing WriteTransaction, Account?) throws -> Void,
        _ decide: (borrowing WriteTransaction, Account?) throws -> AccountEffect
    ) throws -> DecidedSignIn {
        let current = try reading.account(key)
        if current?.user.disabled == true { throw Failure.userDisabled }
        // First: the user may have got another account meanwhile, which no toggle refuses.
        try confirm(self, current)
        if current == nil {
            try SelfService.checkSignUp(settings)
            try SelfService.checkSignUp(present)
        }
        return DecidedSignIn(key: key, current: current, effect: try decide(self, current))
    }

    /// Adds the account that a sign-in makes. Returns the account as it was added (`insertUnderChosenUID`).
    private func make(_ effect: AccountEffect, origin: Origin, now: Timestamp) throws -> Account {
        countsAsGrowth()
        let made = try insertUnderChosenUID(effect.account, origin: origin, now: now)
        try noteIfAnonymous(made)
        try noteHookChanges(effect, origin: origin, now: now)
        return made
    }

    /// Changes the account as the sign-in decided, or makes the account, once everything is proved.
    func apply(_ signIn: DecidedSignIn, address: UInt64?, origin: Origin, now: Timestamp) throws -> Account {
        var effect = signIn.effect
        if let address { effect.account.knownAddresses.remember(address) }
        guard let current = signIn.current else { return try make(effect, origin: origin, now: now) }
        // A user who signs in with a custom token can sign in again.
        if current.hasNoWayIn { try delete(Tables.anonymousUsers, signIn.key) }
        effect.account.user.lastSignInAtMicros = now.microseconds
        return try apply(effect, to: current, keeping: nil, origin: origin, now: now)
    }

    /// Writes a sign-in that is refused because the tenant's hooks disable the user. Nobody is signed in by it, so the
    /// time of the last sign-in stays, and the event log says that a hook disabled the account.
    ///
    /// Where the user has a second factor to show, the proof of the first one changes nothing: the account is disabled,
    /// and otherwise stays as it is. Elsewhere what was proved, and the hooks' other changes, take effect.
    func disable(_ signIn: DecidedSignIn, at step: SecondFactorStep.Decision, origin: Origin, now: Timestamp) throws {
        var effect = signIn.effect
        guard let current = signIn.current else {
            effect.account.user.lastSignInAtMicros = 0
            _ = try make(effect, origin: origin, now: now)
            return try noteDisabledByHook(signIn.key, origin: origin, now: now)
        }
        if case .waits(.factor) = step {
            var onlyDisabled = HookAnswer()
            onlyDisabled.isDisabled = true
            effect = AccountEffect(current).changed(by: onlyDisabled)
        } else if current.hasNoWayIn {
            try delete(Tables.anonymousUsers, signIn.key)
        }
        // What else the sign-in did, such as linking an identity, has an event of its own.
        let changesMore = effect.kind != .signedIn
        if !changesMore { (effect.kind, effect.detail) = (.userUpdated, AccountEffect.disabledByHook) }
        _ = try apply(effect, to: current, keeping: nil, origin: origin, now: now)
        if changesMore { try noteDisabledByHook(signIn.key, origin: origin, now: now) }
    }

    func apply(
        _ effect: AccountEffect, to current: Account, keeping sessionID: [UInt8]?, origin: Origin, now: Timestamp
    ) throws -> Account {
        var changed = effect.account
        // Somebody who signed in while the new password was on its way knew the former one, and must have no device
        // token that counts for the new one (`DeviceTokens`).
        if changed.passwordUpdatedAt != current.passwordUpdatedAt {
            changed.passwordUpdatedAt = max(changed.passwordUpdatedAt, now)
        }
        if let end = effect.endsSessions { changed.revokeTokens(end, now: now) }
        try takeBack(changed, after: effect.emailProof)
        let detail = effect.eventDetail(over: current)
        try replace(current, by: changed, origin: origin, kind: effect.kind, detail: detail, now: now)
        try noteHookChanges(effect, origin: origin, now: now)
        try noteFactorsTakenBack(from: current, by: effect, origin: origin, now: now)
        if let end = effect.endsSessions {
            try endSessions(of: UserKey(changed.user.tenantID, changed.user.uid), except: sessionID, end, now: now)
        }
        return changed
    }
}

// MARK: - Sign-ins that wait

extension WriteTransaction {
    /// Writes down a sign-in that waits for a second factor.
    ///
    /// A sign-in that waits for one of the user's factors changes nothing in the account before it is finished. A user
    /// who has no factor has nothing more to prove: the account is made or changed at once, because it may need a
    /// verified email before a factor can be enrolled. Only the session has to wait.
    func wait(
        for kind: PendingSignInKind, _ signIn: DecidedSignIn, _ first: FirstFactor, id: [UInt8],
        session sessionID: [UInt8] = [], origin: Origin, settings: TenantSettings, now: Timestamp
    ) throws -> SignInPending {
        var pending = StoredPendingSignIn(
            kind: kind, uid: signIn.key.uid, createdAtMicros: now.microseconds,
            expiresAtMicros: (now + StoredPendingSignIn.lifetime(kind)).microseconds,
            signInProvider: first.start.provider, claimsJSON: first.start.claims, deviceName: origin.device.name,
            endUserIP: origin.device.address?.text ?? .empty, addressHash: origin.device.addressHash ?? 0,
            sessionID: sessionID, isNewUser: signIn.current == nil,
            providerUpdatedAtMicros: try reading.providerUpdatedAtMicros(
                first.start.provider, tenantID: signIn.key.tenant),
            hookClaimsJSON: first.start.hookClaims, methodSwitch: Text(first.methodSwitch.rawValue))
        var account = signIn.current ?? signIn.effect.account
        switch kind {
        case .enrollment, .unspecified:
            if let current = signIn.current {
                if signIn.changesAccount {
                    account = try apply(signIn.effect, to: current, keeping: sessionID, origin: origin, now: now)
                }
            } else {
                account = try make(signIn.effect, origin: origin, now: now)
            }
        case .factor:
            if signIn.changesAccount { pending.change = PendingAccountChange(signIn.effect, of: account) }
            try appendEvent(
                .secondFactorAsked, tenantID: signIn.key.tenant, uid: signIn.key.uid, origin: origin,
                detail: first.start.provider, now: now)
        }
        pending.signer = first.start.signer
        pending.tokensValidAfterMicros = account.user.tokensValidAfterMicros
        pending.rawID = account.identity(of: first.start.provider)
        try putPendingSignIn(pending, id: id, tenantID: signIn.key.tenant)
        var user = account.user
        user.secondFactors = signIn.effect.account.user.secondFactors
        return SignInPending(id: id, kind: kind, user: user, provider: first.start.provider)
    }
}

extension ReadTransaction {
    /// The proof of the account's email that a pending sign-in keeps, with its meaning now: the way back may be used or
    /// expired. Nil if it keeps none. ACCOUNT_CHANGED when the account is not the prover's any more.
    func emailProof(
        keptBy pending: StoredPendingSignIn, _ account: Account, now: Timestamp
    ) throws -> ProofOfUnprovedEmail? {
        guard pending.change?.provesEmail == true else { return nil }
        let proof = try proofOfUnprovedEmail(account, now: now)
        switch proof {
        case .takesOver?, .entersKeepingWaysBack?: return proof
        case .isAnothers?, nil: throw Failure.accountChangedMeanwhile
        }
    }
}

extension PendingAccountChange {
    init(_ effect: AccountEffect, of account: Account) {
        self.init(
            accountHash: Self.hash(account), account: effect.account.record, kind: effect.kind, detail: effect.detail,
            endsSessions: effect.endsSessions ?? .unspecified, provesEmail: effect.emailProof != nil,
            hookChanges: effect.hookChanges)
    }

    /// The kept change, over the account as it is now. ACCOUNT_CHANGED when somebody else changed it meanwhile.
    ///
    /// `shown` is the account after the factor was used up; `proof` is what the transaction finds for `provesEmail`.
    func effect(on account: Account, shown: Account, _ proof: ProofOfUnprovedEmail?) throws -> AccountEffect {
        guard let stored = self.account, constantTimeEqual(accountHash, Self.hash(account)) else {
            throw Failure.accountChangedMeanwhile
        }
        var changed = try Account(stored)
        // The addresses of an account that is taken back may be a stranger's.
        if !provesEmail { changed.knownAddresses = account.knownAddresses }
        changed.user.secondFactors = account.user.secondFactors
        changed.user.recoveryCodeCount = shown.user.recoveryCodeCount
        changed.signsInByCustomToken = account.signsInByCustomToken
        var effect = AccountEffect(
            changed, kind: kind, detail: detail, endsSessions: endsSessions == .unspecified ? nil : endsSessions)
        effect.hookChanges = hookChanges
        return effect.takingBack(after: proof)
    }

    /// The hash of the account without the fields that a sign-in changes by itself.
    private static func hash(_ account: Account) -> [UInt8] {
        var account = account
        account.user.lastSignInAtMicros = 0
        account.user.recoveryCodeCount = 0
        account.knownAddresses = KnownAddresses()
        account.signsInByCustomToken = false
        return Digest.sha256(account.record.encoded())
    }
}

extension Failure {
    static let accountChangedMeanwhile = Failure(
        .accountChanged, "The account was changed meanwhile; sign in again.")
}
