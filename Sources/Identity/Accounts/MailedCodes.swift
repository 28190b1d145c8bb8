public import Base
public import Messages
public import Rules
import Store
import Tokens

/// Uses the codes that went to a mailbox.
public struct MailedCodes: Sendable {
    let resources: Resources
    let users: UserDirectory
    let mailer: Mailer
    let recovery: EmailRecovery

    /// Returns what a code is for. Throws INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    public func check(_ code: Secret, settings: TenantSettings) throws -> StoredOobCode {
        try resources.store.read { try $0.oobCode(code, tenantID: settings.tenantID, now: resources.clock.now()) }
    }

    /// Applies a code of VERIFY_EMAIL, VERIFY_AND_CHANGE_EMAIL, RECOVER_EMAIL, REJECT_EMAIL or
    /// REVERT_SECOND_FACTOR_ADDITION; returns the account's email afterwards, or the address that was rejected.
    /// TOO_MANY_ATTEMPTS_TRY_LATER when the old mailbox was told of many changes lately, or when the account has many
    /// REJECT_EMAIL codes.
    public func apply(_ code: Secret, settings: TenantSettings, origin: Origin) async throws -> (
        type: OobRequestType, email: Text
    ) {
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
        let user = try await users.session(tenantID: settings.tenantID, uid: seen.uid).applyCode(origin: origin) {
            [wayBack] transaction, current in
            if type == .verifyEmail || type == .verifyAndChangeEmail {
                return try transaction.applying(code, type, to: current, wayBack, limits: limits, now: now)
            }
            let taken = try transaction.takeOobCode(code, type, tenantID: settings.tenantID, now: now)
            if type == .rejectEmail { return try transaction.rejecting(taken, in: current) }
            if type == .revertSecondFactorAddition { return try transaction.reverting(taken, in: current) }
            let changed = try current.applying(taken)
            try transaction.releaseUnproved(
                taken.email, for: current.user.uid, tenantID: settings.tenantID, origin: origin, now: now)
            return AccountEffect(changed, kind: type.eventKind, endsSessions: .signedOut)
                .takingBack(after: .takesOver(taken))
        }
        if wayBack != nil { mailer.wakeNow() }
        return (type, type == .rejectEmail ? seen.recipient : user.email)
    }

    /// Sets a new password with a code of PASSWORD_RESET and ends every session.
    public func resetPassword(
        _ code: Secret, passwordHash: Text, settings: TenantSettings, origin: Origin
    ) async throws -> User {
        try await startingOverWhenAccountMoved {
            let seen = try check(code, settings: settings)
            let now = resources.clock.now()
            let key = UserKey(settings.tenantID, seen.uid)
            if try resources.store.read({ try $0.emailIsAnothers(key, now: now) }) {
                return try await resetOutside(key, code, passwordHash: passwordHash, settings: settings, origin: origin)
            }
            return try await users.session(tenantID: key.tenant, uid: key.uid).applyCode(origin: origin) {
                transaction, current in
                let proof = try transaction.reading.proofOfUnprovedEmail(current, now: now)
                if try transaction.reading.emailIsAnothers(key, now: now) { throw AccountMoved() }
                // A disabled account keeps its email, and the way back belongs to its owner.
                if case .isAnothers? = proof { throw Failure.invalidOobCode }
                let taken = try transaction.takeOobCode(code, .passwordReset, tenantID: settings.tenantID, now: now)
                let (changed, removed) = try current.resetting(passwordHash: passwordHash, by: taken, now: now)
                return AccountEffect(changed, kind: .passwordReset, detail: removed, endsSessions: .passwordChanged)
                    .takingBack(after: proof)
            }
        }
    }

    /// Resets the password for a person who proves the address of somebody else's account. The address is taken away
    /// from that account, and the person gets a new account. INVALID_OOB_CODE where end users may not sign up.
    private func resetOutside(
        _ key: UserKey, _ code: Secret, passwordHash: Text, settings: TenantSettings, origin: Origin
    ) async throws -> User {
        guard SelfService.refusalOfSignUp(settings) == nil else { throw Failure.invalidOobCode }
        let now = resources.clock.now()
        var account = Account.new(tenantID: key.tenant, uid: resources.random.alphanumeric(28), now: now)
        account.user.lastSignInAtMicros = 0
        account.passwordHash = passwordHash
        account.passwordUpdatedAt = now
        return try await users.changing([key, account.key]) { [account] in
            try await resources.store.write { transaction in
                guard let holder = try transaction.reading.account(key),
                    try transaction.reading.emailIsAnothers(key, now: now)
                else { throw AccountMoved() }
                let taken = try transaction.takeOobCode(code, .passwordReset, tenantID: key.tenant, now: now)
                // The same checks as for a reset of the account itself.
                let proved = try holder.resetting(passwordHash: passwordHash, by: taken, now: now).account.user
                try transaction.release(holder, origin: origin, now: now)
                var account = account
                account.user.email = proved.email
                account.user.emailVerified = true
                account.deriveProviders()
                try transaction.insert(account, origin: origin, now: now)
                return account.user
            }
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
        let checked = try reading.oobCode(code, tenantID: key.tenant, now: now)
        guard checked.requestType == type else { throw Failure.invalidOobCode }
        let changed = try current.applying(checked)
        try checkUnique(changed, key: key)
        try reading.checkRoomForRejection(of: checked, account: key, limits, now: now)
        try putWayBack(wayBack, from: changed, to: current, limits: limits, now: now)
        try makeRoomForRejection(of: checked, account: key, limits, now: now)
        let taken = try takeOobCode(code, type, tenantID: key.tenant, now: now)
        try noteApplied(taken, to: current)
        return AccountEffect(changed, kind: type.eventKind, endsSessions: type == .verifyEmail ? nil : .signedOut)
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
