import Base
import Synchronization
import Tokens

/// The project's keys as they were last fetched.
final class ProjectKeys: Sendable {
    private struct Fetching {
        var lastAt: Instant?
        /// Those who wait for the fetch that is under way for an unknown key. Nil: none is under way.
        var waiters: [Promise<Void>]?
    }

    let published = PublishedKeySet()
    private let source: VerifierSource
    private let floor: Duration
    private let fetching = Mutex(Fetching())

    init(source: VerifierSource, floor: Duration) {
        self.source = source
        self.floor = floor
    }

    /// Fetches the keys if the key of this token is unknown and the last fetch is older than the floor, so that forged
    /// tokens cost the server nothing. All who come during such a fetch wait for it, and for no other one. Returns also
    /// when the fetch failed or the task is cancelled.
    func learnKey(of token: Text) async {
        guard !isKnown(token) else { return }
        let waiter = Promise<Void>()
        let (waits, isFirst) = fetching.withLock { fetching in
            if fetching.waiters != nil {
                fetching.waiters?.append(waiter)
                return (true, false)
            }
            // A fetch may have ended since the look above.
            if isKnown(token) { return (false, false) }
            if let last = fetching.lastAt, last.advanced(by: floor) > .now { return (false, false) }
            (fetching.lastAt, fetching.waiters) = (.now, [waiter])
            return (true, true)
        }
        guard waits else { return }
        // A task of its own: a caller who is cancelled does not end the fetch of the others.
        if isFirst { Task { await fetchForWaiters() } }
        _ = try? await waiter.cancellableValue()
    }

    private func isKnown(_ token: Text) -> Bool { published.current.entry(of: token.bytes, at: .zero) != nil }

    private func fetchForWaiters() async {
        try? await refresh()
        let waiters = fetching.withLock { $0.waiters.take() ?? [] }
        for waiter in waiters { waiter.succeed(()) }
    }

    /// `waits`: for a connection, which only those may do for whom nobody waits.
    func refresh(waits: Bool = false) async throws(Failure) {
        let jwks = try await source.jwks(waits: waits)
        guard let keys = KeySet(parsing: jwks) else {
            throw Failure(.malformedResponse, "The server's keys cannot be read.")
        }
        published.publish(keys)
        fetching.withLock { $0.lastAt = .now }
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
