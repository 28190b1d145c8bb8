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

    static func handle(
        _ request: SessionsWatchAuthStateRequest, _ call: StreamCall,
        _ replies: ReplyStream<SessionsWatchAuthStateResponse>
    ) async throws {
        let (key, sessionID) = try session(of: request.idToken, call)
        try call.service.sessionWatches.begin(key, sessionID)
        defer { call.service.sessionWatches.end(key, sessionID) }
        let watch = call.watch([.user(key), .tenant(key.tenant)], on: replies.loop)
        defer { watch.end() }
        // The token was checked before the watch began. The first look sees the changes between the two.
        var last: AuthState.Mark?
        while true {
            let isLast: Bool
            (last, isLast) = try await replies.send(inTurn: false) { [last] in
                try look(key, sessionID, after: last, call)
            }
            if isLast { return }
            try await watch.next(timeout: lookEvery)
        }
    }

    // Neither this nor `look` is inlined: otherwise their temporary memory would be part of the memory of each waiting
    // stream.
    @inline(never)
    private static func session(of idToken: Text, _ call: StreamCall) throws -> (UserKey, [UInt8]) {
        let verified = try call.verifiedUser(idToken: idToken)
        return (UserKey(call.tenantID, verified.account.user.uid), verified.token.sessionID)
    }

    /// One look at the session: the message about it, its state now, and whether that is its end.
    @inline(never)
    private static func look(
        _ key: UserKey, _ sessionID: [UInt8], after last: AuthState.Mark?, _ call: StreamCall
    ) throws -> (SessionsWatchAuthStateResponse?, (mark: AuthState.Mark?, isLast: Bool)) {
        let settings = try call.stillAdmitted()
        let state = try call.project.store.read { transaction in
            AuthState(
                user: try transaction.user(key), session: try transaction.get(Tables.sessions, SessionKey(sessionID)))
        }
        let step = AuthStateStep.between(last, state, settings: settings, now: call.now)
        // The client would drop the session.
        if step == .signedOut(.expired), call.project.store.isClockAway { throw Failure.clockAway }
        let shown = state.session?.shown(id: sessionID, settings: settings, isCurrent: true)
        let message =
            last == nil && !step.isLast
            ? SessionsWatchAuthStateResponse(change: .initial, user: state.user, session: shown)
            : step.message(of: state, session: shown)
        return (message, (state.mark, step.isLast))
    }
}
