import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Sessions/WatchAuthState: looks when something was committed, and tells what is different from the last
/// look; nothing is queued for a watcher who is slow.
enum SessionsWatchAuthState: ServerStreamMethod {
    /// A session that ends because nobody uses it ends without a write.
    private static let lookEvery = Duration.seconds(60)

    static func handle(
        _ request: SessionsWatchAuthStateRequest, _ call: Call,
        _ replies: ReplyStream<SessionsWatchAuthStateResponse>
    ) async throws {
        let verified = try call.verifiedUser(idToken: request.idToken)
        let key = UserKey(call.tenantID, verified.account.user.uid)
        let sessionID = verified.token.sessionID
        let watch = call.project.changes.watch(
            [.user(key), .tenant(key.tenant), .callers], on: replies.loop)
        defer { watch.end() }
        // The token was checked before the watch began: what happened between the two is seen by looking again.
        var last = AuthState(user: verified.account.user, session: nil)
        var isFirst = true
        while true {
            let settings = try call.stillAdmitted()
            let state = try call.project.store.read { transaction in
                AuthState(
                    user: try transaction.user(key),
                    session: try transaction.get(Tables.sessions, SessionKey(sessionID)))
            }
            let step = AuthStateStep.between(last, state, settings: settings, now: call.now)
            let shown = state.session?.shown(id: sessionID, settings: settings, isCurrent: true)
            if isFirst, !step.isLast {
                try await replies.send(
                    SessionsWatchAuthStateResponse(change: .initial, user: state.user, session: shown))
            } else if let message = step.message(of: state, session: shown) {
                try await replies.send(message)
            }
            if step.isLast { return }
            isFirst = false
            last = state
            try await watch.next(timeout: lookEvery)
        }
    }
}
