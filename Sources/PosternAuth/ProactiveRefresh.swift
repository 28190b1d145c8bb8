import Base
import Synchronization

extension Auth {
    /// The most time by which a token is refreshed earlier than needed, so that many clients do not refresh at once.
    private static let jitterMax = Duration.seconds(60)
    private static let retryDelayMin = Duration.seconds(15)
    private static let retryDelayMax = Duration.minutes(5)

    /// Starts the task that refreshes ahead of time, if somebody is signed in and somebody listens to ID tokens. It
    /// does not keep the user alive.
    ///
    /// A task that sleeps already is left alone if it wakes in time: it looks again then, and ends when nobody needs
    /// it. A sleep that is cancelled keeps its memory until its time has come (Swift 6.3 on Linux): most of an hour for
    /// each token.
    func rearmRefreshing(_ state: inout State) {
        guard let user = refreshedUser(state) else { return }
        let now = backend.clock.monotonic()
        let due = now.advanced(by: user.timeUntilRefresh(at: now))
        if let refreshing = state.refreshing {
            guard due < refreshing.wakesAt else { return }
            refreshing.task.cancel()
        }
        state.lastRefreshingNumber += 1
        let (number, clock) = (state.lastRefreshingNumber, backend.clock)
        let early = Self.jitterMax * backend.random.fraction()
        let task = Task { [weak self] in
            var retryDelay: Duration?
            while let delay = self?.sleepUntilRefresh(number, early, retryDelay) {
                if delay > .zero, (try? await clock.sleep(delay)) == nil { return }
                retryDelay = await self?.refreshAhead(number, early, lastDelay: retryDelay)
            }
        }
        state.refreshing = Refreshing(number: number, task: task, wakesAt: due)
    }

    /// The user whose tokens are kept fresh. Nil: there is none.
    private func refreshedUser(_ state: borrowing State) -> User? {
        state.observers.values.contains { $0.interest != .users } ? state.currentUser : nil
    }

    /// The time that the task has to sleep. Nil: the task is over.
    private func sleepUntilRefresh(_ number: Int, _ early: Duration, _ retryDelay: Duration?) -> Duration? {
        let now = backend.clock.monotonic()
        return state.withLock { state in
            guard state.refreshing?.number == number else { return nil }
            guard let user = refreshedUser(state) else {
                state.refreshing = nil
                return nil
            }
            // If the server's tokens are useless from the start, the next ones are not requested at once.
            let wait = max(user.timeUntilRefresh(at: now) - early, Self.retryDelayMin - user.tokenAge(at: now), .zero)
            let delay = retryDelay ?? wait
            state.refreshing?.wakesAt = now.advanced(by: delay)
            return delay
        }
    }

    /// Refreshes if it is time. Returns how long to wait after a failure, nil after a success.
    private func refreshAhead(_ number: Int, _ early: Duration, lastDelay: Duration?) async -> Duration? {
        let user = state.withLock { $0.refreshing?.number == number ? refreshedUser($0) : nil }
        do throws(AuthError) {
            try await user?.refreshAhead(early)
            return nil
        } catch {
            return lastDelay.map { min($0 * 2, Self.retryDelayMax) } ?? Self.retryDelayMin
        }
    }
}

extension User {
    /// The time from now until the ID token must be replaced; negative when it is time.
    fileprivate func timeUntilRefresh(at now: Instant) -> Duration {
        state.withLock { $0.tokens.remaining(at: now) - $0.tokens.margin }
    }

    /// The time since the ID token was requested.
    fileprivate func tokenAge(at now: Instant) -> Duration {
        state.withLock { $0.tokens.lifetime - $0.tokens.remaining(at: now) }
    }

    /// Refreshes unless another caller did meanwhile. Waking up a little early counts as in time.
    fileprivate func refreshAhead(_ early: Duration) async throws(AuthError) {
        guard timeUntilRefresh(at: backend.clock.monotonic()) <= early + .seconds(1) else { return }
        _ = try await tokens(.replaced)
    }
}

extension RandomSource {
    /// A random number in 0 ..< 1.
    func fraction() -> Double {
        Double(bytes(4).bigEndianNumber) / Double(UInt64(1) << 32)
    }
}
