import Base
import Messages
import PosternClient
import Synchronization

/// Follows one user's session at the server with one stream (`Sessions/WatchAuthState`), while its task runs.
///
/// A stream that is cut is opened again, after ever longer pauses. A stream that is refused is not opened again.
/// Neither signs anybody out: only the server's messages about the session do. The watch does not keep the user alive.
final class UserWatch: Sendable {
    weak let user: User?
    private let backend: Backend
    private let refused = Atomic(false)

    init(_ user: User) {
        self.user = user
        self.backend = user.backend
    }

    /// True if the server refused the stream, and asking again at once would change nothing.
    var isRefused: Bool { refused.load(ordering: .acquiring) }

    /// Returns when the session is over, the user is gone, the stream was refused, or the task is cancelled.
    func run() async {
        var backoff = WatchBackoff()
        while !Task.isCancelled {
            var error: AuthError?
            do throws(AuthError) {
                if try await follow(&backoff) == .over { return }
            } catch let thrown {
                error = thrown
            }
            if Task.isCancelled { return }
            guard let delay = backoff.delay(after: error, jitter: backend.random.fraction()) else {
                return refused.store(true, ordering: .releasing)
            }
            if (try? await backend.clock.sleep(delay)) == nil { return }
        }
    }

    private enum End {
        /// The session is over, or the user is gone.
        case over
        /// The stream ended, though the session goes on.
        case cut
    }

    /// Follows one stream after another for as long as only a refused token ends them. A token that was refused at once
    /// is replaced once; the second refusal decides. A token may be refused later, too: a new password voids it.
    private func follow(_ backoff: inout WatchBackoff) async throws(AuthError) -> End {
        guard var tokens = try await user?.tokens(.valid) else { return .over }
        var mayRenew = true
        while true {
            do throws(AuthError) {
                return try await read(tokens, &backoff, &mayRenew)
            } catch {
                guard mayRenew, error.doubtsIDToken, let renewed = try await user?.renew(tokens, doubt: error) else {
                    throw error
                }
                mayRenew = false
                tokens = renewed
            }
        }
    }

    /// Sets `wasHeard` when a message came.
    private func read(
        _ tokens: TokenSet, _ backoff: inout WatchBackoff, _ wasHeard: inout Bool
    ) async throws(AuthError) -> End {
        let request = SessionsWatchAuthStateRequest(tenantID: backend.tenantID, idToken: tokens.idToken)
        return try await backend.call {
            for try await message in try await backend.sessions.watchAuthState(request) {
                backoff.messageCame()
                wasHeard = true
                guard let user, await user.take(message) else { return .over }
            }
            return .cut
        }
    }
}

/// The pauses between streams.
struct WatchBackoff: Sendable {
    static let delayMin = Duration.seconds(1)
    static let delayMax = Duration.minutes(5)
    private var bound = delayMin

    /// The stream brought a message, so the server can be reached: pauses begin at the shortest again.
    mutating func messageCame() { bound = Self.delayMin }

    /// The pause before the next stream: between half of a bound and the bound, which doubles each time, so that many
    /// clients do not come at once. `jitter` is 0 ..< 1. Nil: no further stream, because the same request would get the
    /// same answer.
    mutating func delay(after error: AuthError?, jitter: Double) -> Duration? {
        if let error, !error.isRetryable { return nil }
        let delay = bound * (0.5 + jitter / 2)
        bound = min(bound * 2, Self.delayMax)
        return max(delay, error?.retryAfter ?? .zero)
    }
}
