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

    /// Fetches the keys regularly. After a failure the old keys stay until the next attempt.
    func keepFresh(every interval: Duration) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            if Task.isCancelled { return }
            try? await refresh(waits: true)
        }
    }
}
