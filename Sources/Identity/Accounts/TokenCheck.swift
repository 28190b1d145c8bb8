public import Base
import Messages
public import Rules
public import Store
import Synchronization
public import Tokens

/// An end user who proved itself with an ID token: the token, and the account as it is now.
public struct VerifiedUser: Sendable {
    public let token: VerifiedToken
    public let account: Account
    public let settings: TenantSettings
    /// When the user last proved who they are, as both the token and its session say. Whoever has copied a signing key
    /// writes what they like into a token.
    let loggedInAt: Timestamp

    /// `session`: when its user last logged in, as its row says.
    init(_ token: VerifiedToken, account: Account, settings: TenantSettings, session loginTime: Timestamp) {
        self.token = token
        self.account = account
        self.settings = settings
        self.loggedInAt = min(token.authTime, loginTime)
    }

    /// Whether the session began anonymously, and its user has linked no way to sign in yet. A user whose only provider
    /// an admin has removed did not begin so: the session may be of somebody whom the admin wanted to keep out.
    public var beganAnonymously: Bool { account.user.providers.isEmpty && token.signInProvider == "anonymous" }

    /// Whether the session is the only way into the account: it began anonymously, and the account has no way to sign
    /// in again that is known to be its user's.
    public var isAnonymous: Bool { beganAnonymously && !account.hasSureWayIn }

    /// Throws CREDENTIAL_TOO_OLD_LOGIN_AGAIN unless the user logged in recently; anonymous users cannot log in again
    /// and are exempt. A user who began anonymously and has proved an email can: the session's age counts from then on.
    public func requireRecentLogin(now: Timestamp) throws(Failure) {
        guard !isAnonymous else { return }
        // A login in the future is not recent. A minute is allowed for truncation to seconds and a small step back.
        let age = now - loggedInAt
        guard age <= settings.recentLogin, age >= .zero - .minutes(1) else { throw .recentLoginRequired }
    }
}

/// The one check of ID tokens: the token is genuine, of this tenant and not revoked, its session is alive, and its user
/// exists and is enabled.
public final class TokenCheck: Sendable {
    private let verifier: IssuedTokenVerifier
    private let marks: RowMarks
    private let clock: Clock
    /// The failure for a string that is not a token.
    private let invalid: Failure

    /// `marks` are of users and sessions.
    public init(verifier: IssuedTokenVerifier, marks: RowMarks, clock: Clock, invalid: Failure = .invalidIDToken) {
        self.invalid = invalid
        self.marks = marks
        self.verifier = verifier
        self.clock = clock
    }

    /// Checks the token by itself, without the store, at `time` or else now. INVALID_ID_TOKEN, TOKEN_EXPIRED: other
    /// nodes of a cluster refuse it, too, unless they know a key that this node does not know, or have another clock.
    public func verify(_ idToken: Text, at time: Timestamp? = nil) throws(Failure) -> VerifiedToken {
        do throws(TokenError) {
            return try verifier.verify(idToken.bytes, now: time ?? clock.now())
        } catch .expired {
            throw Failure.tokenExpired(cause: .expired).resting(on: .clock)
        } catch .early {
            throw invalid.resting(on: .clock)
        } catch .unknownKey {
            throw invalid.resting(on: .unknownKey)
        } catch {
            throw invalid.resting(on: .request)
        }
    }

    /// Proves a signed-in end user: a genuine ID token of this tenant that is not revoked. MISSING_ID_TOKEN, and the
    /// refusals of `verify` and `check`.
    public func verifiedUser(_ idToken: Text, settings: TenantSettings, store: Store) throws -> VerifiedUser {
        try store.read { try verifiedUser(idToken, settings: settings, in: $0) }
    }

    public func verifiedUser(
        _ idToken: Text, settings: TenantSettings, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedUser {
        guard !idToken.isEmpty else { throw Failure.missingIDToken }
        return try check(verify(idToken), settings: settings, in: transaction)
    }

    /// Checks the same as `verify`, but also accepts an expired token, which may still sign its own session out.
    public func verifyExpired(_ idToken: Text) throws(Failure) -> VerifiedToken {
        do throws(TokenError) {
            return try verifier.verify(idToken.bytes, now: clock.now(), allowsExpired: true)
        } catch .early {
            throw invalid.resting(on: .clock)
        } catch {
            throw invalid
        }
    }

    /// Checks a genuine token against the store. In order: TENANT_ID_MISMATCH, USER_NOT_FOUND, USER_DISABLED,
    /// TOKEN_EXPIRED (the session is over, or an older generation).
    ///
    /// USER_DISABLED comes first because disabling ends the sessions, too: a user who is told that the session expired
    /// would sign in again in vain.
    public func checkAlive(
        _ token: VerifiedToken, settings: TenantSettings, at now: Timestamp, in transaction: borrowing ReadTransaction
    ) throws {
        guard token.tenantID == settings.tenantID else {
            throw Failure.tenantMismatch(tokenOf: token.tenantID, request: settings.tenantID)
        }
        let known = token.note as? TokenStatus
        if let known, marks.isCurrent(known.dated, known.places, in: transaction),
            known.dated.value.allow(token, settings: settings, now: now)
        {
            return
        }
        _ = try liveUser(of: token, settings: settings, in: transaction)
    }

    /// Checks a token, and returns the account for the caller to work on.
    public func check(
        _ token: VerifiedToken, settings: TenantSettings, in transaction: borrowing ReadTransaction
    ) throws -> VerifiedUser {
        let (user, session) = try liveUser(of: token, settings: settings, in: transaction)
        let account = try Account(transaction.record(Tables.users, user))
        return VerifiedUser(token, account: account, settings: settings, session: session.authTime)
    }

    /// Checks a token again that began something which goes on, such as a stream. `account`: that of the token's user,
    /// as it is now. INVALID_ID_TOKEN after the token's signing key was revoked; TOKEN_EXPIRED after a change that
    /// ended all older tokens, though perhaps not their session.
    public func checkUnrevoked(_ origin: TokenOrigin, of account: Account) throws(Failure) {
        if verifier.isRevoked(keyID: origin.keyID) { throw invalid }
        try origin.checkGeneration(of: account)
    }

    /// The token's user as it lies in the database, valid while the transaction lasts, and its session. The rows'
    /// content is kept beside the token until one of the rows changes.
    private func liveUser(
        of token: VerifiedToken, settings: TenantSettings, in transaction: borrowing ReadTransaction
    ) throws -> (user: UnsafeRawBufferPointer, session: SessionStatus) {
        guard token.tenantID == settings.tenantID else {
            throw Failure.tenantMismatch(tokenOf: token.tenantID, request: settings.tenantID)
        }
        guard let user = try transaction.borrowedValue(Tables.users, UserKey(token.tenantID, token.uid)),
            let status = UserStatus(Account.encodedUser(in: user))
        else { throw Failure.userNotFound }
        if status.isDisabled { throw Failure.userDisabled }
        guard let record = try transaction.borrowedValue(Tables.sessions, SessionKey(token.sessionID)),
            let session = SessionStatus(record, tenantID: token.tenantID, uid: token.uid), session.belongsToUser
        else { throw Failure.sessionGone(token.sessionID, settings: settings, now: clock.now()) }
        if let cause = session.refusedCause(settings: settings, now: clock.now()) {
            throw Failure.tokenExpired(cause: cause)
        }
        if token.generation != status.tokensValidAfterMicros {
            try token.origin.checkGeneration(of: Account(transaction.record(Tables.users, user)))
        }
        if let dated = transaction.datedUnlessWriting(TokenRows(user: status, session: session)) {
            token.keep { TokenStatus(dated, places(of: token)) }
        }
        return (user, session)
    }

    private func places(of token: VerifiedToken) -> (RowMarks.Place, RowMarks.Place) {
        (
            marks.place(of: Tables.users, UserKey(token.tenantID, token.uid)),
            marks.place(of: Tables.sessions, SessionKey(token.sessionID))
        )
    }
}
