import Base
import Synchronization

/// The calls of the tenants with the most of them, in bounded memory: the algorithm "Space-Saving" (Metwally, Agrawal,
/// El Abbadi, 2005). Any thread.
///
/// If all places are taken when a tenant without a place comes, the tenant with the fewest calls loses its place, and
/// the new tenant's count goes on from there. So a count is never too low and never falls; it is too high at most by
/// the count that it went on from. Tenants with more than a share of 1/`tenantsCountedMax` of all calls always have a
/// place.
final class TenantCalls: Sendable {
    /// A tenant's place. Code that keeps it looks for a tenant once and not with each call.
    final class Place: Sendable {
        let tenantID: Text
        private let calls: Atomic<UInt64>
        private let isLost = Atomic(false)

        init(_ tenantID: Text, goingOnFrom count: UInt64) {
            self.tenantID = tenantID
            self.calls = Atomic(count)
        }

        var count: UInt64 { calls.load(ordering: .relaxed) }

        /// False when the tenant lost its place; the calls are not counted then.
        func add(_ count: UInt64 = 1) -> Bool {
            guard !isLost.load(ordering: .relaxed) else { return false }
            calls.add(count, ordering: .relaxed)
            return true
        }

        func lose() { isLost.store(true, ordering: .relaxed) }
    }

    private let placesMax: Int
    private let shownMax: Int
    private let places = Mutex<[Text: Place]>([:])

    init(limits: Limits) {
        self.placesMax = limits.tenantsCountedMax
        self.shownMax = limits.tenantsShownMax
    }

    /// Counts calls and returns the tenant's place.
    func count(_ tenantID: Text, _ count: UInt64 = 1) -> Place {
        let place = place(of: tenantID)
        _ = place.add(count)
        return place
    }

    /// The tenant's place; if it has none, that of the tenant with the fewest calls.
    func place(of tenantID: Text) -> Place {
        places.withLock { places in
            if let place = places[tenantID] { return place }
            var count: UInt64 = 0
            if places.count >= placesMax, let least = places.values.min(by: { $0.count < $1.count }) {
                places[least.tenantID] = nil
                least.lose()
                count = least.count
            }
            let place = Place(tenantID, goingOnFrom: count)
            places[tenantID] = place
            return place
        }
    }

    /// The tenants with the most calls.
    var most: [(tenantID: Text, count: UInt64)] {
        let all = places.withLock { places in places.values.map { (tenantID: $0.tenantID, count: $0.count) } }
        return Array(all.sorted { ($1.count, $0.tenantID) < ($0.count, $1.tenantID) }.prefix(shownMax))
    }
}
