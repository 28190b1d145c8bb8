public import Base
public import Messages
import Store
import Tokens

/// Using the codes that went to a mailbox.
extension Project {
    /// What a code is for. INVALID_OOB_CODE, EXPIRED_OOB_CODE.
    public func checkOobCode(_ code: Secret, settings: TenantSettings) throws -> StoredOobCode {
        try store.read { try $0.oobCode(code, tenantID: settings.tenantID, now: clock.now()) }
    }

    /// Does what a code of VERIFY_EMAIL, VERIFY_AND_CHANGE_EMAIL or RECOVER_EMAIL is for; returns the user then.
    /// TOO_MANY_ATTEMPTS_TRY_LATER when the old mailbox was told of many changes lately.
    public func applyOobCode(_ code: Secret, settings: TenantSettings, origin: Origin) async throws -> (
        type: OobRequestType, user: User
    ) {
        let seen = try checkOobCode(code, settings: settings)
        let type = seen.requestType
        let now = clock.now()
        // The old address hears of the change, whoever made it.
        var recovery: PreparedOob?
        if type == .verifyAndChangeEmail {
            if let newEmail = Email(stored: seen.newEmail) { try settings.checkMayEnter(newEmail, field: "oob_code") }
            recovery = try await prepareRecovery(
                uid: seen.uid, email: seen.email, newEmail: seen.newEmail, settings: settings, now: now)
        }
        let user = try await users.session(tenantID: settings.tenantID, uid: seen.uid).applyCode(origin: origin) {
            [recovery] transaction, current in
            let taken = try transaction.takeOobCode(code, type, tenantID: settings.tenantID, now: now)
            let changed = try current.applying(taken)
            if type == .recoverEmail {
                try transaction.removeOobCodes(of: UserKey(settings.tenantID, taken.uid)) {
                    OobCodes.isVoided($0, by: taken)
                }
            }
            try recovery?.put(in: transaction, as: current)
            return AccountEffect(changed, kind: type.eventKind, endsSessions: type == .verifyEmail ? nil : .signedOut)
        }
        if recovery != nil { await mailer.wake() }
        return (type, user)
    }

    /// The way back to an email that is being replaced, for the transaction that replaces it.
    func prepareRecovery(
        uid: Text, email: Text, newEmail: Text, settings: TenantSettings, now: Timestamp
    ) async throws -> PreparedOob {
        if !settings.isSynthetic, let old = Email(stored: email) {
            try await tenants.tenant(settings).admitNotice(to: old)
        }
        var order = OobOrder(.recoverEmail, email: email)
        order.uid = uid
        order.newEmail = newEmail
        return try oobDelivery.prepare(order, settings: settings, now: now)
    }

    /// Sets a new password with a code of PASSWORD_RESET and ends every session.
    public func resetPassword(
        _ code: Secret, passwordHash: Text, settings: TenantSettings, origin: Origin
    ) async throws -> User {
        let seen = try checkOobCode(code, settings: settings)
        let now = clock.now()
        return try await users.session(tenantID: settings.tenantID, uid: seen.uid).applyCode(origin: origin) {
            transaction, current in
            let taken = try transaction.takeOobCode(code, .passwordReset, tenantID: settings.tenantID, now: now)
            let (changed, removed) = try current.resetting(passwordHash: passwordHash, by: taken, now: now)
            if !current.user.emailVerified {
                try transaction.removeOobCodes(of: UserKey(settings.tenantID, taken.uid))
            }
            return AccountEffect(changed, kind: .passwordReset, detail: removed, endsSessions: .passwordChanged)
        }
    }

    /// Signs in, or up, with the code of a link that was sent to `email`.
    public func signIn(
        emailLink code: Secret, email: Email, settings: TenantSettings, origin: Origin, deadline: Instant
    ) async throws -> SignedIn {
        let tenantID = settings.tenantID
        try requireAddress(email, of: try checkOobCode(code, settings: settings))
        return try await startingOverWhenAccountMoved {
            let seen = try store.read { try $0.uid(ofEmail: email, tenantID: tenantID) }
            if seen == nil { try settings.checkMayEnter(email) }
            let uid = seen ?? resources.random.alphanumeric(28)
            return try await users.session(tenantID: tenantID, uid: uid).signIn(
                SessionStart("password"), settings: settings, origin: origin, deadline: deadline
            ) { [now = clock.now()] transaction, current in
                guard try transaction.reading.uid(ofEmail: email, tenantID: tenantID) == seen else {
                    throw AccountMoved()
                }
                _ = try transaction.takeOobCode(code, .emailSignin, tenantID: tenantID, now: now)
                return try transaction.enteringByLink(current, email: email, key: UserKey(tenantID, uid), now: now)
            }
        }
    }

    /// Links signing in by mail to a signed-in user.
    public func link(
        emailLink code: Secret, email: Email, to verified: VerifiedUser, origin: Origin, deadline: Instant
    ) async throws -> SignedIn {
        let settings = verified.settings
        let user = verified.account.user
        try requireAddress(email, of: try checkOobCode(code, settings: settings))
        return try await users.session(tenantID: user.tenantID, uid: user.uid).change(
            by: verified.token, provingAs: verified.isAnonymous ? SessionStart("password") : nil,
            settings: settings, origin: origin, deadline: deadline
        ) { [now = clock.now()] transaction, current in
            if current.user.email.isEmpty { try settings.checkMayEnter(email) }
            _ = try transaction.takeOobCode(code, .emailSignin, tenantID: settings.tenantID, now: now)
            let owner = try transaction.reading.uid(ofEmail: email, tenantID: settings.tenantID)
            guard owner == nil || owner == current.user.uid else {
                throw Failure.credentialInUse(detail: "EMAIL_EXISTS")
            }
            return AccountEffect(try current.linkingEmailLink(email), kind: .providerLinked, detail: "emailLink")
        }
    }

    /// Proves a signed-in user by a link that was sent to its email. USER_MISMATCH.
    public func reauthenticate(
        _ verified: VerifiedUser, emailLink code: Secret, email: Email, origin: Origin, deadline: Instant
    ) async throws -> SignedIn {
        let settings = verified.settings
        try requireAddress(email, of: try checkOobCode(code, settings: settings))
        return try await reauthenticate(
            verified, as: SessionStart("password"), origin: origin, deadline: deadline
        ) { [now = clock.now()] transaction, current in
            guard Email(stored: current.user.email) == email else { throw Failure.userMismatch }
            _ = try transaction.takeOobCode(code, .emailSignin, tenantID: settings.tenantID, now: now)
        }
    }

    private func requireAddress(_ email: Email, of code: StoredOobCode) throws(Failure) {
        guard code.requestType == .emailSignin else { throw .invalidOobCode }
        guard Email(stored: code.email) == email else {
            throw .invalid("INVALID_EMAIL", field: "email", "is not the address this link was sent to")
        }
    }
}

extension WriteTransaction {
    /// What a proved address makes of its account: a new one, the same, or one that leaves nothing unproved.
    fileprivate func enteringByLink(
        _ current: Account?, email: Email, key: UserKey, now: Timestamp
    ) throws -> AccountEffect {
        guard var account = current else {
            var account = Account.new(tenantID: key.tenant, uid: key.uid, now: now)
            account.user.email = email.address
            account.user.emailVerified = true
            account.signsInByEmailLink = true
            account.deriveProviders()
            return AccountEffect(account)
        }
        guard !account.user.emailVerified else {
            account.signsInByEmailLink = true
            account.deriveProviders()
            return AccountEffect(account)
        }
        let removed = account.keepOnlyProved(by: nil)
        account.signsInByEmailLink = true
        account.deriveProviders()
        try removeOobCodes(of: key)
        return AccountEffect(account, kind: .credentialsRemoved, detail: removed, endsSessions: .signedOut)
    }
}

extension OobRequestType {
    fileprivate var eventKind: EventKind {
        switch self {
        case .verifyAndChangeEmail: .emailChanged
        case .recoverEmail: .emailRecovered
        case .passwordReset: .passwordReset
        case .verifyEmail, .emailSignin, .unspecified: .emailVerified
        }
    }
}
