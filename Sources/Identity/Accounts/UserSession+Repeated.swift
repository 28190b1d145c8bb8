import Base
import Messages
import Rules
import Signing
import Store

extension UserSession {
    /// Issues the tokens of the first answer again, for an hour, and only while the session lives and was not refreshed
    /// since. Then nobody has used the first tokens, except perhaps the client that lost them.
    ///
    /// Throws ALREADY_DONE, or `SignInPending` where the first answer asked for a second factor.
    public func signedInAgain(_ repeated: RepeatedSession, _ request: EndUserRequest) async throws -> SignedIn {
        let (settings, now) = (request.settings, resources.clock.now())
        try repeated.requireAnswerable(now: now)
        if !repeated.pendingID.isEmpty { throw try pendingAgain(repeated.pendingID, now: now) }
        let found = try resources.store.read { transaction -> (StoredSession, User)? in
            guard let session = try transaction.get(Tables.sessions, SessionKey(repeated.sessionID)),
                session.isUnused(sinceCounter: repeated.counter),
                session.refusedCause(settings: settings, now: now) == nil,
                let user = try transaction.user(UserKey(session.tenantID, session.uid)), !user.disabled
            else { return nil }
            return (session, user)
        }
        guard let (session, user) = found else { throw Failure.alreadyDone }
        let grant = SessionGrant(session, repeating: repeated, of: user)
        let tokens = try await issuer.tokens(for: grant, settings: settings, now: now, deadline: request.deadline)
        return SignedIn(grant, tokens: tokens)
    }

    /// Runs `body`, which signs the user in or goes on with a session. If its write finds that the same request was
    /// done before (`RepeatedSession`), this answers as `signedInAgain` does.
    func answeringRepeat(of request: EndUserRequest, _ body: () async throws -> SignedIn) async throws -> SignedIn {
        do {
            return try await body()
        } catch let repeated as RepeatedSession {
            return try await signedInAgain(repeated, request)
        }
    }

    /// The sign-in that still waits for its second factor; ALREADY_DONE once it is over.
    private func pendingAgain(_ id: [UInt8], now: Timestamp) throws -> SignInPending {
        let key = key
        return try resources.store.read { transaction in
            guard let kind = try transaction.get(Tables.pendingSignIns, TenantHashKey(key.tenant, id))?.kind else {
                throw Failure.alreadyDone
            }
            var (pending, account) = try transaction.pendingSignIn(id, kind, tenantID: key.tenant, now: now)
            account.takeBack(after: try transaction.emailProof(keptBy: pending, account, now: now))
            return SignInPending(id: id, kind: kind, user: account.user, provider: pending.signInProvider)
        }
    }
}

extension RepeatedSession {
    /// Throws ALREADY_DONE when the ID token of the first answer would have expired by now. Until then the tokens are
    /// issued again.
    func requireAnswerable(now: Timestamp) throws(Failure) {
        let age = now - madeAt
        guard age <= TokenSigner.tokenLifetime, age >= .zero - TimeKeeping.slack else { throw .alreadyDone }
    }
}
