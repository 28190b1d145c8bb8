public import Base
public import Messages
public import Rules
import Store
import Tokens

/// Uses the codes that went to a mailbox.
public struct MailedCodes: Sendable {
    let users: UserDirectory
    let hooks: BlockingHooks
    let mailer: Mailer
    let recovery: EmailRecovery

    private var resources: Resources { users.resources }

    /// The record of a code that may still be used. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    public func check(_ code: Secret, settings: TenantSettings) throws -> StoredOobCode {
        try resources.store.read { try $0.oobCode(code, tenantID: settings.tenantID, now: resources.clock.now()) }
    }

    /// Runs a request that uses a code, unless the same request was done before: then its answer is given again,
    /// without the secrets that it held. IDEMPOTENCY_KEY_REUSED.
    public func answeringRepeats<Answer: Message>(
        of origin: Origin, _ request: () async throws -> Answer
    ) async throws -> Answer {
        try await answeringAgain({ try resources.earlierAnswer(to: origin) }, request)
    }

    /// Applies a code of VERIFY_EMAIL, VERIFY_AND_CHANGE_EMAIL, RECOVER_EMAIL, REJECT_EMAIL or
    /// REVERT_SECOND_FACTOR_ADDITION; answers the account's email afterwards, or the address that was rejected.
    /// TOO_MANY_ATTEMPTS_TRY_LATER when the old mailbox was told of many changes lately, or when the account has many
    /// REJECT_EMAIL codes.
    public func apply(
        _ code: Secret, settings: TenantSettings, origin: Origin
    ) async throws -> AccountsApplyOobCodeResponse {
        let seen = try check(code, settings: settings)
        let type = seen.requestType
        if type == .passwordReset || type == .emailSignin { throw Failure.invalidOobCode }
        let now = resources.clock.now()
        // The old address is told of the change, no matter who made it.
        var wayBack: PreparedOob?
        if type == .verifyAndChangeEmail {
            if let newEmail = Email(stored: seen.newEmail) { try settings.checkMayEnter(newEmail, field: "oob_code") }
            let key = UserKey(settings.tenantID, seen.uid)
            let account = try resources.store.read {
                // Before a notice to the old address is counted.
                try $0.checkRoomForRejection(of: seen, account: key, resources.limits, now: now)
                return try $0.account(key)
            }
            wayBack = try await recovery.prepare(
                of: account?.user, newEmail: seen.newEmail, settings: settings, now: now)
        }
        let limits = resources.limits
        let session = users.session(tenantID: settings.tenantID, uid: seen.uid)
        let (answer, _) = try await session.applyCode(
            origin: origin,
            answering: { user in
                let email = type == .rejectEmail ? seen.recipient : user.email
                return AccountsApplyOobCodeResponse(requestType: type, email: email)
            }
        ) { [wayBack] transaction, current in
            if type == .verifyEmail || type == .verifyAndChangeEmail {
                return try transaction.applying(code, type, to: current, wayBack, limits: limits, now: now)
            }
            if type == .recoverEmail { return try transaction.recovering(code, in: current, origin: origin, now: now) }
            if type == .revertSecondFactorAddition { return try transaction.reverting(code, in: current, now: now) }
            let taken = try transaction.takeOobCode(code, type, tenantID: settings.tenantID, now: now)
            return try transaction.rejecting(taken, in: current)
        }
        if wayBack != nil { mailer.wakeNow() }
        return answer
    }

    /// Sets a new password with a code of PASSWORD_RESET and ends every session. Where that makes an account, the
    /// tenant's `before_create` hook is asked: BLOCKED_BY_HOOK and the like, and USER_DISABLED for a user whom the hook
    /// disables. If the same request was done before, the answer is that of then, and the user is nil.
    public func resetPassword(
        _ code: Secret, passwordHash: Text, settings: TenantSettings, origin: Origin, deadline: Instant
    ) async throws -> (answer: AccountsResetPasswordResponse, changed: User?) {
        try await startingOverWhenAccountMoved {
            let seen = try check(code, settings: settings)
            let now = resources.clock.now()
            let key = UserKey(settings.tenantID, seen.uid)
            if try resources.store.read({ try $0.emailIsAnothers(key, now: now) }) {
                return try await resetOutside(
                    key, code, passwordHash: passwordHash, settings: settings, origin: origin, deadline: deadline)
            }
            return try await users.session(tenantID: key.tenant, uid: key.uid).applyCode(
                origin: origin, answering: { AccountsResetPasswordResponse(email: $0.email) }
            ) { transaction, current in
                let proof = try transaction.reading.proofOfUnprovedEmail(current, now: now)
                if try transaction.reading.emailIsAnothers(key, now: now) { throw AccountMoved() }
                // A disabled account keeps its email, and the way back belongs to its owner.
                if case .isAnothers? = proof { throw Failure.invalidOobCode }
                let (changed, removed) = try transaction.resetting(
                    code, in: current, passwordHash: passwordHash, now: now)
                return AccountEffect(changed, kind: .passwordReset, detail: removed, endsSessions: .passwordChanged)
                    .takingBack(after: proof)
            }
        }
    }

    /// Resets the password for a person who proves the address of somebody else's account. The address is taken away
    /// from that account, and the person gets a new account. INVALID_OOB_CODE where end users may not sign up,
    /// INVALID_EMAIL where they may not with such an address.
    ///
    /// The account is new to the tenant, so its `before_create` hook is asked. No session begins.
    private func resetOutside(
        _ key: UserKey, _ code: Secret, passwordHash: Text, settings: TenantSettings, origin: Origin, deadline: Instant
    ) async throws -> (answer: AccountsResetPasswordResponse, changed: User?) {
        guard SelfService.refusalOfSignUp(settings) == nil else { throw Failure.invalidOobCode }
        let now = resources.clock.now()
        var account = Account.new(tenantID: key.tenant, uid: resources.random.alphanumeric(28), now: now)
        account.user.lastSignInAtMicros = 0
        account.passwordHash = passwordHash
        account.passwordUpdatedAt = now
        account.user.email = try provedEmail(key, code, passwordHash: passwordHash, settings: settings, now: now)
        account.user.emailVerified = true
        account.deriveProviders()
        let wanted = try await hooks.ask(
            BlockingHooks.Event(
                isNewUser: true, beginsSession: false, account: account, signInProvider: "password",
                deviceName: .empty, endUserIP: .empty, requestID: origin.requestID),
            tenantID: key.tenant, source: origin.source(nil), deadline: deadline)
        let effect = AccountEffect(account).changed(by: wanted)
        account = effect.account
        let done = try await users.changing([key, account.key]) { [account] in
            try await resources.store.write { transaction in
                var made: User?
                // A user whom the hook disables is refused, so there is no answer to keep for a repeat.
                let answer = try transaction.answeringRepeat(
                    of: account.user.disabled ? .server : origin, now: now
                ) {
                    try transaction.insert(account, insteadOf: key, by: code, origin: origin, now: now)
                    try transaction.noteHookChanges(effect, origin: origin, now: now)
                    if account.user.disabled {
                        try transaction.noteDisabledByHook(account.key, origin: origin, now: now)
                    }
                    made = account.user
                    return AccountsResetPasswordResponse(email: account.user.email)
                }
                return (answer: answer, changed: made)
            }
        }
        if account.user.disabled { throw Failure.userDisabled }
        return done
    }

    /// The email of somebody else's account, which the code proves.
    private func provedEmail(
        _ key: UserKey, _ code: Secret, passwordHash: Text, settings: TenantSettings, now: Timestamp
    ) throws -> Text {
        try resources.store.read {
            try $0.holderOfProved(code, key, passwordHash: passwordHash, settings: settings, now: now).email
        }
    }
}

extension WriteTransaction {
    /// Uses up a code of VERIFY_EMAIL or VERIFY_AND_CHANGE_EMAIL. Everything that can refuse it comes before the first
    /// change.
    fileprivate func applying(
        _ code: Secret, _ type: OobRequestType, to current: Account, _ wayBack: PreparedOob?, limits: Limits,
        now: Timestamp
    ) throws -> AccountEffect {
        let key = current.key
        let (checked, changed, _) = try reading.applied(code, type, to: current, now: now)
        try checkUnique(changed, key: key)
        try reading.checkRoomForRejection(of: checked, account: key, limits, now: now)
        try putWayBack(wayBack, from: changed, to: current, limits: limits, now: now)
        try makeRoomForRejection(of: checked, account: key, limits, now: now)
        let taken = try takeOobCode(code, type, tenantID: key.tenant, now: now)
        try noteApplied(taken, to: current)
        return AccountEffect(changed, kind: type.eventKind, endsSessions: type == .verifyEmail ? nil : .signedOut)
    }

    /// Uses up a code of PASSWORD_RESET. Returns the account with the new password, and the names of the ways to sign
    /// in that it lost. INVALID_OOB_CODE, also when the account has another email by now.
    fileprivate func resetting(
        _ code: Secret, in current: Account, passwordHash: Text, now: Timestamp
    ) throws -> (account: Account, removed: Text) {
        let tenantID = current.key.tenant
        let checked = try reading.oobCode(code, .passwordReset, tenantID: tenantID, now: now)
        let reset = try current.resetting(passwordHash: passwordHash, by: checked, now: now)
        _ = try takeOobCode(code, .passwordReset, tenantID: tenantID, now: now)
        return reset
    }

    /// Uses up a code of PASSWORD_RESET that was sent for the account of `key`: its email goes to `account`, which is
    /// added. Everything that can refuse it comes before the first change.
    fileprivate func insert(
        _ account: Account, insteadOf key: UserKey, by code: Secret, origin: Origin, now: Timestamp
    ) throws {
        let present = try currentSettings(of: key.tenant)
        try present.requireOpenToEndUsers()
        guard SelfService.refusalOfSignUp(present) == nil else { throw Failure.invalidOobCode }
        let (holder, email) = try reading.holderOfProved(
            code, key, passwordHash: account.passwordHash, settings: present, now: now)
        // The hook was asked about this email.
        guard email == account.user.email else { throw AccountMoved() }
        _ = try takeOobCode(code, .passwordReset, tenantID: key.tenant, now: now)
        try release(holder, origin: origin, now: now)
        try insert(account, origin: origin, now: now)
        try removeSignInLinks(toEmailOf: account)
    }

    /// Uses up a code of RECOVER_EMAIL. EMAIL_EXISTS when another account proved the address meanwhile. Everything that
    /// can refuse the code comes before the first change.
    fileprivate func recovering(
        _ code: Secret, in current: Account, origin: Origin, now: Timestamp
    ) throws -> AccountEffect {
        let key = current.key
        let (checked, changed, removed) = try reading.applied(code, .recoverEmail, to: current, now: now)
        let holder = try reading.otherHolder(of: checked.email, than: key)
        if let holder, holder.user.emailVerified { throw Failure.emailExists }
        let taken = try takeOobCode(code, .recoverEmail, tenantID: key.tenant, now: now)
        if let holder { try release(holder, origin: origin, now: now) }
        return AccountEffect(changed, kind: .emailRecovered, detail: removed, endsSessions: .signedOut)
            .takingBack(after: .takesOver(taken))
    }
}

extension ReadTransaction {
    /// A code of this kind that is still good, the account after it was applied, and the names of the ways to sign in
    /// that the account loses. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    fileprivate func applied(
        _ code: Secret, _ type: OobRequestType, to current: Account, now: Timestamp
    ) throws -> (code: StoredOobCode, account: Account, removed: Text) {
        let checked = try oobCode(code, type, tenantID: current.user.tenantID, now: now)
        let (account, removed) = try current.applying(checked)
        return (checked, account, removed)
    }

    /// The account of `key`, which holds an email that is another person's, and this email, which the code of
    /// PASSWORD_RESET proves. INVALID_OOB_CODE, EXPIRED_OOB_CODE, INVALID_EMAIL. Throws `AccountMoved` when the account
    /// does not hold such an email.
    fileprivate func holderOfProved(
        _ code: Secret, _ key: UserKey, passwordHash: Text, settings: TenantSettings, now: Timestamp
    ) throws -> (account: Account, email: Text) {
        guard let holder = try account(key), try emailIsAnothers(key, now: now) else { throw AccountMoved() }
        let checked = try oobCode(code, .passwordReset, tenantID: key.tenant, now: now)
        // The same checks as for a reset of the account itself.
        let email = try holder.resetting(passwordHash: passwordHash, by: checked, now: now).account.user.email
        if let email = Email(stored: email) { try settings.checkMayEnter(email, field: "oob_code") }
        return (holder, email)
    }
}

extension OobRequestType {
    fileprivate var eventKind: EventKind {
        switch self {
        case .verifyAndChangeEmail: .emailChanged
        case .recoverEmail: .emailRecovered
        case .rejectEmail: .emailRejected
        case .revertSecondFactorAddition: .secondFactorReverted
        case .passwordReset: .passwordReset
        case .verifyEmail, .emailSignin, .unspecified: .emailVerified
        }
    }
}
