import Base
import Identity
import Messages
import Rules
import Store
import Tokens

/// postern.v1.Sessions/WatchAuthState: looks at the session after a commit, and tells the difference from the last
/// look; nothing is queued for a slow watcher.
enum SessionsWatchAuthState: ServerStreamMethod {
    /// A session that ends because it is unused ends without a write.
    private static let lookEvery = Duration.seconds(60)

    private typealias End = Result<Void, Failure>

    static func handle(
        _ request: SessionsWatchAuthStateRequest, _ call: StreamCall,
        _ replies: ReplyStream<SessionsWatchAuthStateResponse>
    ) async throws {
        let (key, sessionID, origin) = try session(of: request.idToken, call)
        try call.service.sessionWatches.begin(key, sessionID)
        defer { call.service.sessionWatches.end(key, sessionID) }
        let watch = call.watch([.user(key), .tenant(key.tenant)], on: replies.loop)
        defer { watch.end() }
        // The token was checked before the watch began. The first look sees the changes between the two.
        var last: AuthState.Mark?
        while true {
            let end: End?
            (last, end) = try await replies.send(inTurn: false) { [last] in
                try look(key, sessionID, origin, after: last, call)
            }
            if let end { return try end.get() }
            try await watch.next(timeout: lookEvery)
        }
    }

    // Neither this nor `look` is inlined: otherwise their temporary memory would be part of the memory of each waiting
    // stream.
    @inline(never)
    private static func session(of idToken: Text, _ call: StreamCall) throws -> (UserKey, [UInt8], TokenOrigin) {
        let verified = try call.verifiedUser(idToken: idToken)
        let token = verified.token
        return (UserKey(call.tenantID, verified.account.user.uid), token.sessionID, token.origin)
    }

    /// One look at the session: the message about it, its state now, and the stream's end.
    ///
    /// The stream outlives the expiry of the token that began it, but not its revocation: perhaps the user has changed
    /// the password because somebody else has the token. Its holder is told that the session has new tokens, and no
    /// more.
    @inline(never)
    private static func look(
        _ key: UserKey, _ sessionID: [UInt8], _ origin: TokenOrigin, after last: AuthState.Mark?, _ call: StreamCall
    ) throws -> (SessionsWatchAuthStateResponse?, (mark: AuthState.Mark?, end: End?)) {
        let settings = try call.stillAdmitted()
        let (account, session) = try call.project.store.read { transaction in
            (try transaction.account(key), try transaction.get(Tables.sessions, SessionKey(sessionID)))
        }
        let state = AuthState(user: account?.user, session: session)
        let step = AuthStateStep.between(last, state, settings: settings, now: call.now)
        // The client would drop the session.
        if step == .signedOut(.expired), call.project.store.isClockAway { throw Failure.clockAway }
        if let account, !step.isLast {
            do throws(Failure) {
                try call.project.tokenCheck.checkUnrevoked(origin, of: account)
            } catch {
                let message = step.message(of: AuthState(user: nil, session: nil), session: nil)
                return (step.hasNewTokens ? message : nil, (state.mark, .failure(error)))
            }
        }
        let shown = state.session?.shown(id: sessionID, settings: settings, isCurrent: true)
        let message =
            last == nil && !step.isLast
            ? SessionsWatchAuthStateResponse(change: .initial, user: state.user, session: shown)
            : step.message(of: state, session: shown)
        return (message, (state.mark, step.isLast ? .success(()) : nil))
    }
}
