import Base
import Synchronization

/// The named hash specs that all imports hold together. An import holds its specs until its stream ends, and a tenant
/// may have thousands of streams, which nothing else counts.
///
/// A tenant gets another place only while it holds fewer places than are free: one tenant alone gets half of them.
/// Nobody waits for a place, because an import may hold its specs for hours. Any thread.
public final class HashSpecPlaces: Sendable {
    private struct State: Sendable {
        var freeCount: Int
        /// Without tenants that hold none.
        var counts: [Text: Int] = [:]
    }

    private let state: Mutex<State>

    init(countMax: Int) { state = Mutex(State(freeCount: countMax)) }

    /// The places that are free.
    public var freeCount: Int { state.withLock { $0.freeCount } }

    /// SERVER_OVERLOADED.
    fileprivate func take(_ tenantID: Text) throws(Failure) {
        let isTaken = state.withLock { state in
            guard state.counts[tenantID, default: 0] < state.freeCount else { return false }
            state.counts[tenantID, default: 0] += 1
            state.freeCount -= 1
            return true
        }
        guard isTaken else { throw .tooManyHashSpecs }
    }

    fileprivate func leave(_ count: Int, of tenantID: Text) {
        state.withLock { state in
            let rest = state.counts[tenantID, default: 0] - count
            state.counts[tenantID] = rest > 0 ? rest : nil
            state.freeCount += count
        }
    }
}

/// The places of one import's specs. They are free again when the import is gone.
final class HeldHashSpecs: Sendable {
    private let places: HashSpecPlaces
    private let tenantID: Text
    private let count = Atomic<Int>(0)

    init(_ places: HashSpecPlaces, _ tenantID: Text) { (self.places, self.tenantID) = (places, tenantID) }

    deinit { places.leave(count.load(ordering: .acquiring), of: tenantID) }

    /// Takes a place for one more spec. SERVER_OVERLOADED.
    func add() throws(Failure) {
        try places.take(tenantID)
        count.add(1, ordering: .acquiringAndReleasing)
    }
}

extension Failure {
    fileprivate static let tooManyHashSpecs = Failure(
        .serverOverloaded, "Imports hold too many hash specs; try again when one of them has ended.",
        retryAfter: .seconds(10))
}
