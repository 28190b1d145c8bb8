import Base
import Messages
import Rules
import Store
import Tokens

/// The decision about a refresh, with the session as it is now and the user for the new ID token.
struct DecidedRefresh: Sendable {
    let decision: RefreshDecision
    let session: StoredSession
    let user: User
    /// When it was decided.
    let time: Timestamp
}

extension ReadTransaction {
    /// Decides on a presented refresh token and writes nothing: `WriteTransaction.refresh` writes the changed session.
    func refresh(
        _ token: RefreshToken, of key: UserKey, attemptHash: [UInt8], settings: TenantSettings, now: Timestamp,
        clockDifference: Duration
    ) throws -> DecidedRefresh {
        guard let session = try get(Tables.sessions, SessionKey(token.sessionID)) else {
            throw Failure.sessionGone(token.sessionID, settings: settings, now: now)
        }
        guard session.uid == key.uid, session.tenantID == key.tenant else { throw Failure.invalidRefreshToken }
        guard let account = try account(key) else { throw Failure.userNotFound }
        if account.user.disabled { throw Failure.userDisabled }
        let decision = session.refreshing(
            presentedCounter: token.counter, attemptHash: attemptHash, settings: settings, now: now,
            clockDifference: clockDifference)
        return DecidedRefresh(
            decision: decision, session: decision.changed ?? session, user: account.user, time: now)
    }
}

extension WriteTransaction {
    /// Decides about a presented refresh token and writes the one record that changes. `now` is the time of this run,
    /// not that of the request: another node may have rotated the token while the write waited.
    ///
    /// A refresh changes nothing but the session's own counter, so it appends no event. A reuse that ends the session
    /// does.
    func refresh(
        _ token: RefreshToken, of key: UserKey, attemptHash: [UInt8], settings: TenantSettings, now: Timestamp,
        clockDifference: Duration
    ) throws -> DecidedRefresh {
        let decided = try reading.refresh(
            token, of: key, attemptHash: attemptHash, settings: settings, now: now, clockDifference: clockDifference)
        guard let changed = decided.decision.changed else { return decided }
        try put(Tables.sessions, SessionKey(token.sessionID), changed)
        switch decided.decision {
        case .revokedByReuse:
            try revokeTokens(ofSession: token.sessionID, of: key, now: now)
            try removeOobCodesAskedFromSessions(of: key)
            try appendEvent(
                .sessionRevoked, tenantID: key.tenant, uid: key.uid, origin: .server, detail: "refresh token reuse",
                now: now)
        case .rotated, .reused: announce(.user(key))
        // Nobody who watches the session sees a difference.
        case .repeatedWithinGrace, .repeatedAfterLoss, .reusedAgain, .refused: break
        }
        return decided
    }
}
