import Base
import Reactor
import Synchronization

/// The owners of tenants, one for each tenant at most, made on demand.
///
/// An owner is released when no call uses it and its counts no longer matter (`Tenant.isIdle`). It is made again when
/// it is asked for.
///
/// A call for an owner also checks two other owners, in turn, and releases them if they are idle. So its cost does not
/// grow with the number of tenants. Any thread.
final class TenantOwners: Sendable {
    fileprivate struct Place {
        let tenantID: Text
        var owner: Tenant
    }

    fileprivate struct State {
        var places: [Place] = []
        var indices: [Text: Int] = [:]
        var hand = 0
    }

    private let state = Mutex(State())
    private static let stepsPerCall = 2
    /// How many places are looked at under one lock.
    private static let stepsPerSlice = 100

    var count: Int { state.withLock { $0.places.count } }

    func owner(of tenantID: Text, now: Timestamp, make: () -> Tenant) -> Tenant {
        let (owner, idle) = state.withLock { state in
            let owner = state.find(tenantID) ?? state.insert(tenantID, make())
            return (owner, state.step(Self.stepsPerCall, now: now))
        }
        Self.release(idle)
        return owner
    }

    /// Checks every owner once.
    func forgetIdle(now: Timestamp) {
        for _ in 0...(count / Self.stepsPerSlice) {
            Self.release(state.withLock { $0.step(Self.stepsPerSlice, now: now) })
        }
    }

    /// Releases each owner on its loop, where its timer belongs.
    private static func release(_ owners: [Tenant]) {
        for owner in owners { owner.loop.run { _ = owner } }
    }
}

extension TenantOwners.State {
    fileprivate func find(_ tenantID: Text) -> Tenant? { indices[tenantID].map { places[$0].owner } }

    fileprivate mutating func insert(_ tenantID: Text, _ owner: Tenant) -> Tenant {
        indices[tenantID] = places.count
        places.append(TenantOwners.Place(tenantID: tenantID, owner: owner))
        return owner
    }

    /// Checks the next places, and takes out the owners that are not needed.
    fileprivate mutating func step(_ count: Int, now: Timestamp) -> [Tenant] {
        var idle: [Tenant] = []
        for _ in 0..<min(count, places.count) {
            hand = hand + 1 < places.count ? hand + 1 : 0
            // Another reference to the owner means that its holder is about to count something. Nobody gets a new
            // reference while the lock is held.
            guard places[hand].owner.isIdle(at: now), isKnownUniquelyReferenced(&places[hand].owner) else { continue }
            let place = places[hand]
            indices[place.tenantID] = nil
            idle.append(place.owner)
            // The last place moves to the one that is free now.
            let last = places.removeLast()
            guard hand < places.count else { continue }
            places[hand] = last
            indices[last.tenantID] = hand
        }
        return idle
    }
}
