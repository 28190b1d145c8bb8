import Base
import Synchronization

extension Auth {
    /// How much earlier than it must, at most, a token is refreshed, so that many clients do not come at once.
    private static let jitterMax = Duration.seconds(60)
    private static let retryDelayMin = Duration.seconds(15)
    private static let retryDelayMax = Duration.minutes(5)

    /// Starts, restarts or ends the task that refreshes ahead of time: there is one exactly while somebody is signed in
    /// and somebody listens to ID tokens. It does not keep the user alive.
    func rearmRefreshing(_ state: inout State) {
        state.refreshing?.cancel()
        state.refreshing = nil
        guard let user = state.currentUser, state.observers.values.contains(where: { $0.interest != .users }) else {
            return
        }
        let clock = backend.clock
        let early = Self.jitterMax * backend.random.fraction()
        state.refreshing = Task { [weak user] in
            // A server whose tokens are good for nothing is not asked for the next one at once.
            guard var delay = user.map({ max($0.timeUntilRefresh - early, Self.retryDelayMin - $0.tokenAge) }) else {
                return
            }
            var retryDelay = Self.retryDelayMin
            while !Task.isCancelled {
                if delay > .zero, (try? await clock.sleep(delay)) == nil { return }
                guard let user else { return }
                // When it succeeds, or ends the session, this task is cancelled: the next tokens have their own.
                if (try? await user.refreshAhead(early)) != nil { return }
                delay = retryDelay
                retryDelay = min(retryDelay * 2, Self.retryDelayMax)
            }
        }
    }
}

extension User {
    /// From now until the ID token must be replaced; negative when it is time.
    fileprivate var timeUntilRefresh: Duration {
        let now = backend.clock.monotonic()
        return state.withLock { $0.tokens.remaining(at: now) - $0.tokens.margin }
    }

    /// Since the ID token was asked for.
    fileprivate var tokenAge: Duration {
        let now = backend.clock.monotonic()
        return state.withLock { $0.tokens.lifetime - $0.tokens.remaining(at: now) }
    }

    /// Refreshes unless, meanwhile, somebody else did. Waking up a little early counts as in time.
    fileprivate func refreshAhead(_ early: Duration) async throws(AuthError) {
        guard timeUntilRefresh <= early + .seconds(1) else { return }
        _ = try await validTokens(forced: true, cause: .expired)
    }
}

extension RandomSource {
    /// 0 ..< 1.
    func fraction() -> Double {
        let bits = bytes(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        return Double(bits) / Double(UInt64(1) << 32)
    }
}
