import Base
import Synchronization

/// The named hash specs that all imports hold together. An import holds its specs until its stream ends, and a tenant
/// may have thousands of streams, which nothing else counts.
///
/// The places are shared by tenants as `SharedPlaces` says. Nobody waits for a place, because an import may hold its
/// specs for hours. Any thread.
public final class HashSpecPlaces: Sendable {
    private let places: Mutex<SharedPlaces>

    init(countMax: Int) { places = Mutex(SharedPlaces(countMax: countMax)) }

    /// The places that are free.
    public var freeCount: Int { places.withLock { $0.freeCount } }

    /// SERVER_OVERLOADED.
    fileprivate func take(_ tenantID: Text) throws(Failure) {
        guard places.withLock({ $0.take(tenantID) }) else { throw .tooManyHashSpecs }
    }

    fileprivate func leave(_ count: Int, of tenantID: Text) {
        places.withLock { $0.leave(count, of: tenantID) }
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
