public import Base
import Messages
public import Rules
public import Store
import Tokens

/// A user who may enroll a second factor: one who is signed in, or one who has an enrollment credential, because the
/// tenant lets nobody in without a factor.
public struct EnrollingUser: Sendable {
    enum Proof: Sendable {
        case token(VerifiedUser)
        case pending(id: [UInt8])
    }

    public let account: Account
    let proof: Proof

    /// Whether the user holds an enrollment credential.
    public var isStopped: Bool {
        if case .pending = proof { true } else { false }
    }

    /// The pending sign-in of the user's enrollment credential. Empty for a user with an ID token.
    public var pendingSignInID: [UInt8] {
        if case .pending(let id) = proof { id } else { [] }
    }

    /// CREDENTIAL_TOO_OLD_LOGIN_AGAIN. The holder of an enrollment credential passes: the login is no older than the
    /// credential's lifetime.
    public func requireRecentLogin(settings: TenantSettings, now: Timestamp) throws(Failure) {
        guard case .token(let user) = proof else { return }
        try user.requireRecentLogin(now: now)
    }

    /// Requires, in the transaction that acts on the proof, that it still holds: the session may have ended meanwhile.
    /// USER_NOT_FOUND, USER_DISABLED, INVALID_ID_TOKEN, TOKEN_EXPIRED.
    public func requireStillProved(
        settings: TenantSettings, now: Timestamp, in transaction: borrowing ReadTransaction
    ) throws {
        switch proof {
        case .token(let user): _ = try transaction.account(of: user, now: now)
        case .pending(let id): _ = try transaction.enrollingAccount(id, tenantID: settings.tenantID, now: now)
        }
    }
}

extension ReadTransaction {
    /// The account of an enrollment credential. INVALID_ID_TOKEN when the credential is over; USER_DISABLED.
    fileprivate func enrollingAccount(_ id: [UInt8], tenantID: Text, now: Timestamp) throws -> Account {
        do {
            return try pendingSignIn(id, .enrollment, tenantID: tenantID, now: now).account
        } catch let failure as Failure where failure.is(.invalidMFAPendingCredential) {
            throw Failure.invalidIDToken
        }
    }
}

extension SecondFactorEnrollments {
    /// The user of an ID token or of an enrollment credential. MISSING_ID_TOKEN, and the refusals of
    /// `TokenCheck.verifiedUser`; INVALID_ID_TOKEN for an enrollment credential that is over.
    public func user(
        _ idToken: Text, settings: TenantSettings, in transaction: borrowing ReadTransaction
    ) throws -> EnrollingUser {
        if let user = try stoppedUser(idToken, settings: settings, in: transaction) { return user }
        let user = try tokenCheck.verifiedUser(idToken, settings: settings, in: transaction)
        return EnrollingUser(account: user.account, proof: .token(user))
    }

    /// The user of an enrollment credential; nil for a string that is not one.
    public func stoppedUser(
        _ credential: Text, settings: TenantSettings, in transaction: borrowing ReadTransaction
    ) throws -> EnrollingUser? {
        let found = credential.bytes.withUnsafeBytes { pendingSignIns.id(in: $0, tenantID: settings.tenantID) }
        guard let id = found else { return nil }
        let account = try transaction.enrollingAccount(id, tenantID: settings.tenantID, now: resources.clock.now())
        return EnrollingUser(account: account, proof: .pending(id: id))
    }

    /// Ends an enrollment credential: its user signs out. False for a string that is not one; true for a credential
    /// that was over before.
    public func end(_ credential: Text, settings: TenantSettings) async throws -> Bool {
        let found = credential.bytes.withUnsafeBytes { pendingSignIns.id(in: $0, tenantID: settings.tenantID) }
        guard let id = found else { return false }
        let key = TenantHashKey(settings.tenantID, id)
        guard let pending = try resources.store.read({ try $0.get(Tables.pendingSignIns, key) }) else { return true }
        guard pending.kind == .enrollment else { return false }
        try await users.session(tenantID: settings.tenantID, uid: pending.uid).write(for: .removal) { transaction in
            try transaction.removePendingSignIn(id, pending, tenantID: settings.tenantID)
        }
        return true
    }
}

extension ReadTransaction {
    /// A signed-in user whose session may change second factors: its login is recent, and it showed a factor if the
    /// user has one. CREDENTIAL_TOO_OLD_LOGIN_AGAIN: a reauthentication asks for a factor.
    ///
    /// This holds while the tenant's second factors are DISABLED, too, although no sign-in asks for a factor then. The
    /// factors count again later, and until then a password alone must not remove them.
    func changingFactors(
        _ token: VerifiedToken, settings: TenantSettings, now: Timestamp
    ) throws -> (account: Account, session: StoredSession) {
        let key = UserKey(settings.tenantID, token.uid)
        let (account, session) = try signedIn(key, by: token, settings: settings, now: now)
        let loginTime = Timestamp(microseconds: session.authTimeMicros)
        try VerifiedUser(token, account: account, settings: settings, session: loginTime).requireRecentLogin(now: now)
        if !account.user.secondFactors.isEmpty, session.secondFactor.isEmpty {
            throw Failure.recentLoginRequired
        }
        return (account, session)
    }
}
