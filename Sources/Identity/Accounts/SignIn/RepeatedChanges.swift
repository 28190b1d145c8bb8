public import Base
import Messages
import Rules
import Store
import Tokens

// Answering a request again whose first answer was lost, where that answer was tokens, or where the change ended the
// request's own ID token. Decision 0013 says who could gain what by that.

/// Finds the changes that were made before, by their idempotency keys, and answers them again.
public struct RepeatedChanges: Sendable {
    private let resources: Resources
    private let users: UserDirectory
    private let tokenCheck: TokenCheck

    init(resources: Resources, users: UserDirectory, tokenCheck: TokenCheck) {
        self.resources = resources
        self.users = users
        self.tokenCheck = tokenCheck
    }

    /// The tokens of the same change by the same signed-in user, made with the same idempotency key; nil when no such
    /// change was made, or its answer had no tokens. IDEMPOTENCY_KEY_REUSED, INVALID_ID_TOKEN, TENANT_ID_MISMATCH,
    /// ALREADY_DONE.
    ///
    /// Called before anything else, because a change may end the token it is made with.
    public func answer(to request: EndUserRequest) async throws -> SignedIn? {
        // A sign-in, which proves its user by other means, has no ID token.
        guard !request.idToken.isEmpty, let record = try resources.earlier(request.origin), !record.sessionID.isEmpty
        else { return nil }
        let token = try author(of: record, idToken: request.idToken, settings: request.settings)
        guard token.sessionID == record.sessionID else { throw Failure.invalidIDToken }
        return try await users.session(tenantID: token.tenantID, uid: token.uid)
            .signedInAgain(RepeatedSession(record), request)
    }

    /// The answer to the same sign-in from before; nil when it was not done before. Its end user has been proved again,
    /// or was proved by a code that the sign-in used up. IDEMPOTENCY_KEY_REUSED, ALREADY_DONE, `SignInPending`.
    ///
    /// The transaction of a sign-in finds the record as well. It comes too late for the tenant's hooks, which are asked
    /// before it and might refuse now what they allowed then. `session` is any session of the tenant.
    func answer(toProved request: EndUserRequest, by session: UserSession) async throws -> SignedIn? {
        guard let record = try resources.earlier(request.origin) else { return nil }
        return try await session.signedInAgain(RepeatedSession(record), request)
    }

    /// The session that one of `methods` began under the idempotency key that is `attemptID` in hexadecimal digits, and
    /// that session's user; nil when there is none. The key alone stands for the request: only the request's maker
    /// knows either of them (0045).
    public func begunSession(
        attemptID: [UInt8], caller: Text, tenantID: Text, methods: [String]
    ) throws -> (uid: Text, session: RepeatedSession)? {
        let key = Hex.encode(attemptID).bytes
        return try resources.store.read { transaction in
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

    /// Whether the same request deleted the token's account already. The refusals are those of `answer(to:)`.
    public func isDeletion(_ request: EndUserRequest) throws -> Bool {
        guard let record = try resources.earlier(request.origin) else { return false }
        _ = try author(of: record, idToken: request.idToken, settings: request.settings)
        return true
    }

    /// The token of the user who made a change: genuine, and valid when the change was made. It is accepted for an hour
    /// after the change, because the ID token of the first answer would have been good for the session that long.
    private func author(
        of record: StoredIdempotency, idToken: Text, settings: TenantSettings
    ) throws -> VerifiedToken {
        let repeated = RepeatedSession(record)
        try repeated.requireAnswerable(now: resources.clock.now())
        let token = try tokenCheck.verify(idToken, at: repeated.madeAt)
        guard token.tenantID == settings.tenantID else {
            throw Failure.tenantMismatch(tokenOf: token.tenantID, request: settings.tenantID)
        }
        return token
    }
}
