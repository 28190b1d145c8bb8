public import Base
import Messages
import Signing
import Store
import Tokens

// Answering again a request whose first answer was lost, where that answer was tokens, or ended the token that the
// request is made with. Decision 0013 says who could gain what by it.

/// What a mutation found under its idempotency key: the session its first answer was the tokens of.
public struct RepeatedSession: Error {
    let sessionID: [UInt8]
    /// Of the refresh token in that answer.
    let counter: UInt64
    let madeAt: Timestamp

    init(_ record: StoredIdempotency) {
        self.sessionID = record.sessionID
        self.counter = record.counter
        self.madeAt = Timestamp(microseconds: record.madeAtMicros)
    }
}

/// Tokens are given again for as long as an ID token of the first answer would have spoken for the session.
/// ALREADY_DONE.
private func requireAnswerable(madeAt: Timestamp, now: Timestamp) throws(Failure) {
    let age = now - madeAt
    guard age <= TokenSigner.tokenLifetime, age >= .zero - TimeKeeping.slack else { throw .alreadyDone }
}

extension UserSession {
    /// The tokens of the first answer, issued again for an hour and only while the session lives and went on from
    /// nothing else: then nobody has used them but, at most, who lost them. ALREADY_DONE.
    public func signedInAgain(
        _ repeated: RepeatedSession, settings: TenantSettings, deadline: Instant
    ) async throws -> SignedIn {
        let now = resources.clock.now()
        try requireAnswerable(madeAt: repeated.madeAt, now: now)
        let found = try resources.store.read { transaction -> (StoredSession, User)? in
            guard let session = try transaction.get(Tables.sessions, SessionKey(repeated.sessionID)),
                session.isUnused(sinceCounter: repeated.counter),
                session.refusedCause(settings: settings, now: now) == nil,
                let user = try transaction.user(UserKey(session.tenantID, session.uid)), !user.disabled
            else { return nil }
            return (session, user)
        }
        guard let (session, user) = found else { throw Failure.alreadyDone }
        let tokens = try await issuer.tokens(
            for: user, session: session, sessionID: repeated.sessionID, settings: settings, now: now,
            deadline: deadline)
        return SignedIn(user: user, tokens: tokens)
    }
}

extension StoredSession {
    /// The refresh token with `counter` is the newest and was never presented. Where tokens are reused presenting one
    /// leaves the counter as it is, but not the time of the last use.
    func isUnused(sinceCounter counter: UInt64) -> Bool {
        self.counter == counter && lastUsedAtMicros == max(createdAtMicros, rotatedAtMicros)
    }
}

extension Project {
    /// The tokens of the same change by the same signed-in user, made with the same idempotency key; nil when it was
    /// not made, or answered no tokens. IDEMPOTENCY_KEY_REUSED, INVALID_ID_TOKEN, TENANT_ID_MISMATCH, ALREADY_DONE.
    public func repeatedChange(
        idToken: Text, settings: TenantSettings, origin: Origin, deadline: Instant
    ) async throws -> SignedIn? {
        // A sign-in, which proves its user by other means, has no ID token.
        guard !idToken.isEmpty, let record = try earlier(origin), !record.sessionID.isEmpty else { return nil }
        let token = try author(of: record, idToken: idToken, settings: settings)
        guard token.sessionID == record.sessionID else { throw Failure.invalidIDToken }
        return try await users.session(tenantID: token.tenantID, uid: token.uid)
            .signedInAgain(RepeatedSession(record), settings: settings, deadline: deadline)
    }

    /// The session that one of `methods` began under the idempotency key that is `attemptID` in hexadecimal digits, and
    /// whose it is; nil when there is none. The key alone stands for the request: both are its maker's only (0045).
    public func begunSession(
        attemptID: [UInt8], caller: Text, tenantID: Text, methods: [String]
    ) throws -> (uid: Text, session: RepeatedSession)? {
        let key = Hex.encode(attemptID).bytes
        return try store.read { transaction in
            for method in methods {
                let recordKey = Idempotency.recordKey(key, caller: caller, tenantID: tenantID, method: method)
                guard let record = try transaction.get(Tables.idempotency, recordKey), !record.sessionID.isEmpty,
                    let session = try transaction.get(Tables.sessions, SessionKey(record.sessionID)),
                    session.tenantID == tenantID
                else { continue }
                return (session.uid, RepeatedSession(record))
            }
            return nil
        }
    }

    /// Whether the same request deleted the token's account already. Refusals as `repeatedChange`.
    public func isRepeatedDeletion(idToken: Text, settings: TenantSettings, origin: Origin) throws -> Bool {
        guard let record = try earlier(origin) else { return false }
        _ = try author(of: record, idToken: idToken, settings: settings)
        return true
    }

    /// Whether the same request was done before, and will be answered again. IDEMPOTENCY_KEY_REUSED.
    public func isRepeated(_ origin: Origin) throws -> Bool { try earlier(origin) != nil }

    private func earlier(_ origin: Origin) throws -> StoredIdempotency? {
        guard let idempotency = origin.idempotency else { return nil }
        return try store.read { try $0.earlier(idempotency) }
    }

    /// The token of who made a change: genuine, and in its time when the change was made. That is believed for as long
    /// as the ID token of the first answer, which lives an hour, would have spoken for the session.
    private func author(
        of record: StoredIdempotency, idToken: Text, settings: TenantSettings
    ) throws -> VerifiedToken {
        let madeAt = Timestamp(microseconds: record.madeAtMicros)
        try requireAnswerable(madeAt: madeAt, now: clock.now())
        let token = try tokenCheck.verify(idToken, at: madeAt)
        guard token.tenantID == settings.tenantID else { throw Failure.tenantMismatch }
        return token
    }
}
