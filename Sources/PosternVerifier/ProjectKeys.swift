import Base
import Synchronization
import Tokens

/// The project's keys as they were last fetched.
final class ProjectKeys: Sendable {
    let published = PublishedKeySet()
    private let source: VerifierSource
    private let floor: Duration
    private let fetchedAt = Mutex<Instant?>(nil)

    init(source: VerifierSource, floor: Duration) {
        self.source = source
        self.floor = floor
    }

    /// Whether fetching the keys again may bring the key of this token: its key is unknown, and the last fetch is older
    /// than the floor. Returns true once per floor, so that forged tokens cost the server nothing.
    func mayKnowMore(than token: Text) -> Bool {
        guard published.current.entry(of: token.bytes, at: .zero) == nil else { return false }
        return fetchedAt.withLock { fetchedAt in
            if let last = fetchedAt, last.advanced(by: floor) > .now { return false }
            fetchedAt = .now
            return true
        }
    }

    /// `waits`: for a connection, which only those may do for whom nobody waits.
    func refresh(waits: Bool = false) async throws(Failure) {
        let jwks = try await source.jwks(waits: waits)
        guard let keys = KeySet(parsing: jwks) else {
            throw Failure(.malformedResponse, "The server's keys cannot be read.")
        }
        published.publish(keys)
        fetchedAt.withLock { $0 = .now }
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
