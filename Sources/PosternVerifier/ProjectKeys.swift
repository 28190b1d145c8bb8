import Base
import Synchronization
import Tokens

/// The project's keys as they were last fetched.
final class ProjectKeys: Sendable {
    private struct Fetching {
        /// The end of the last fetch for an unknown key, or of the last fetch that brought keys.
        var lastAt: Instant?
        /// Whether a fetch for an unknown key is under way.
        var isUnderWay = false
        /// The callers that wait for that fetch. Nil: no caller waits, or begins to wait.
        var waiters: [Promise<Void>]?
        /// How many fetches have begun. Several may be under way.
        var begunCount = 0
        /// The number of the fetch whose keys are published.
        var publishedFetch = 0
        /// `fetchSoon` was called, and no fetch has begun since.
        var isAskedFor = false
        /// Wakes the task that runs `fetchWhenAsked`. Nil: the task does not sleep.
        var sleeper: Promise<Void>?
    }

    let published = PublishedKeySet()
    private let source: VerifierSource
    private let floor: Duration
    private let patience: Duration
    private let fetching = Mutex(Fetching())

    /// `floor`: the shortest time from the end of one fetch for an unknown key to the next one. `patience`: the longest
    /// time that callers wait for a fetch.
    init(source: VerifierSource, floor: Duration, patience: Duration = .seconds(3)) {
        self.source = source
        self.floor = floor
        self.patience = patience
    }

    /// Fetches the keys if the key of this token is unknown and the last fetch is older than the floor. So forged
    /// tokens do not cause a fetch each. Callers that come during such a fetch wait for it, and for no other fetch. If
    /// it takes longer than `patience`, none of them waits any more. Also returns when the fetch failed or the task is
    /// cancelled.
    func learnKey(of token: Text) async {
        guard !isKnown(token) else { return }
        let waiter = Promise<Void>()
        let (waits, isFirst) = fetching.withLock { fetching in
            if fetching.isUnderWay {
                fetching.waiters?.append(waiter)
                return (fetching.waiters != nil, false)
            }
            // A fetch may have ended since the look above.
            if isKnown(token) { return (false, false) }
            if let last = fetching.lastAt, last.advanced(by: floor) > .now { return (false, false) }
            (fetching.isUnderWay, fetching.waiters) = (true, [waiter])
            return (true, true)
        }
        guard waits else { return }
        // A task of its own: a caller who is cancelled does not end the fetch of the others.
        if isFirst { Task { await fetchForWaiters() } }
        _ = try? await waiter.cancellableValue()
    }

    /// Whether a fetch for an unknown key is under way.
    var isFetching: Bool { fetching.withLock { $0.isUnderWay } }

    /// How many fetches have begun, for whatever reason.
    var begunFetchCount: Int { fetching.withLock { $0.begunCount } }

    /// Whether the token's header is that of a published key's tokens.
    func isKnown(_ token: Text) -> Bool { published.current.entry(of: token.bytes, at: .zero) != nil }

    private func fetchForWaiters() async {
        let impatience = Task {
            if (try? await Task.sleep(for: patience)) != nil { releaseWaiters { _ in } }
        }
        try? await refresh()
        impatience.cancel()
        // The floor counts from here: a server that answers slowly is not asked again at once.
        releaseWaiters { ($0.isUnderWay, $0.lastAt) = (false, .now) }
    }

    private func releaseWaiters(_ change: (inout Fetching) -> Void) {
        let waiters = fetching.withLock { fetching in
            change(&fetching)
            return fetching.waiters.take() ?? []
        }
        for waiter in waiters { waiter.succeed(()) }
    }

    /// Fetches and publishes the keys. `waits`: for a connection. Only a background task may wait: no caller waits for
    /// its result.
    func refresh(waits: Bool = false) async throws(Failure) {
        let fetch = beginFetch()
        let jwks = try await source.jwks(waits: waits)
        guard let keys = KeySet(parsing: jwks) else {
            throw Failure(.malformedResponse, "The server's keys cannot be read.")
        }
        publish(keys, of: fetch)
    }

    /// Returns the number of a fetch that begins now.
    func beginFetch() -> Int {
        fetching.withLock { fetching in
            fetching.begunCount += 1
            return fetching.begunCount
        }
    }

    /// Publishes the keys that a fetch brought, unless those of a later fetch are published: a slow answer may be one
    /// from before a key was revoked, without its successor.
    func publish(_ keys: KeySet, of fetch: Int) {
        fetching.withLock { fetching in
            fetching.lastAt = .now
            guard fetch > fetching.publishedFetch else { return }
            fetching.publishedFetch = fetch
            published.publish(keys)
        }
    }

    /// Has the keys fetched by the task that runs `fetchWhenAsked`, and does not wait. A fetch under way does not
    /// count: its answer may be from before the reason of this call. Further calls before the next fetch begins add no
    /// fetch.
    func fetchSoon() {
        let sleeper = fetching.withLock { fetching in
            fetching.isAskedFor = true
            return fetching.sleeper.take()
        }
        sleeper?.succeed(())
    }

    /// Fetches the keys whenever `fetchSoon` asks for it, until the task is cancelled. One task runs this.
    func fetchWhenAsked() async {
        while await isAsked() { try? await refresh(waits: true) }
    }

    /// Waits for `fetchSoon`. False: the task was cancelled.
    private func isAsked() async -> Bool {
        while !Task.isCancelled {
            let sleeper = fetching.withLock { fetching -> Promise<Void>? in
                guard !fetching.isAskedFor else {
                    fetching.isAskedFor = false
                    return nil
                }
                let sleeper = Promise<Void>()
                fetching.sleeper = sleeper
                return sleeper
            }
            guard let sleeper else { return true }
            _ = try? await sleeper.cancellableValue()
        }
        return false
    }

    /// Fetches the keys regularly. After a failure the old keys stay until the next attempt.
    func keepFresh(every interval: Duration) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            if Task.isCancelled { return }
            try? await refresh(waits: true)
        }
    }
}
