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

    /// Whether fetching them again may bring the key of this token: it is not among them, and the last time is past the
    /// floor, so that made-up tokens cost the server nothing. Says so once per floor.
    func mayKnowMore(than token: Text) -> Bool {
        guard published.current.entry(of: token.bytes, at: .zero) == nil else { return false }
        return fetchedAt.withLock { fetchedAt in
            if let last = fetchedAt, last.advanced(by: floor) > .now { return false }
            fetchedAt = .now
            return true
        }
    }

    func refresh() async throws(Failure) {
        let jwks = try await source.jwks()
        guard let keys = KeySet(parsing: jwks) else {
            throw Failure(.internal, "MALFORMED_RESPONSE", "The server's keys cannot be read.")
        }
        published.publish(keys)
        fetchedAt.withLock { $0 = .now }
    }

    /// A failure leaves what there is; the next time may do better.
    func keepFresh(every interval: Duration) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            if Task.isCancelled { return }
            try? await refresh()
        }
    }
}
