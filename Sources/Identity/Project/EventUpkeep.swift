public import Base
import Messages
import Store
import Synchronization

/// The sweep's work on the event logs: it deletes the events that are past a tenant's retention, and follows the chains
/// of all tenants, in turn, to check that the events are the committed ones.
public final class EventUpkeep: Sendable {
    /// How far a tenant's chain was followed.
    private struct Followed {
        let tenant: Text
        var place: EventHead
        var isDone: Bool
    }

    private struct State {
        /// The tenant whose retention was looked at last; nil = begin with the first.
        var trimmed: TenantPrefix?
        /// Nil = begin with the first tenant.
        var followed: Followed?
    }

    /// Events that are missing or differ from the committed ones.
    public let faults = Counter()
    private let resources: Resources
    private let bounds: Bounds
    private let state = Mutex(State())

    /// The limits of one sweep, for all tenants together. At a minute a sweep, a million events are followed in less
    /// than an hour.
    struct Bounds {
        var tenantsMax = 5_000
        var eventsFollowedMax = 20_000
        var eventsDeletedPerWrite = 500
    }

    init(_ resources: Resources, bounds: Bounds = Bounds()) {
        self.resources = resources
        self.bounds = bounds
    }

    // MARK: Retention

    /// Deletes the events past their retention; one node does this for all nodes of a cluster. A tenant with a damaged
    /// record or event keeps its events, and does not keep the others.
    func trim(now: Timestamp) async throws {
        let last = state.withLock { $0.trimmed }
        let (keeping, next) = try tenantsWithRetention(after: last)
        for (tenantID, retention) in keeping {
            do {
                try await trim(tenantID, retention: retention, now: now)
            } catch StoreError.corrupt(let table) {
                resources.damagedRecords.passOver(tenantID, table: table)
            }
        }
        state.withLock { $0.trimmed = next }
    }

    private func trim(_ tenantID: Text, retention: Duration, now: Timestamp) async throws {
        var slice: TrimmedSlice
        repeat {
            slice = try await resources.store.write(for: .removal) { [bounds] transaction in
                try transaction.trimEvents(
                    of: tenantID, before: now - retention, limit: bounds.eventsDeletedPerWrite, now: now)
            }
        } while slice.isMore
        if let damage = slice.damage { throw damage }
    }

    private func tenantsWithRetention(
        after last: TenantPrefix?
    ) throws -> (found: [(Text, Duration)], next: TenantPrefix?) {
        try resources.store.read { transaction in
            var found: [(Text, Duration)] = []
            let next = try transaction.eachTenant(
                after: last, limit: bounds.tenantsMax, passingOver: resources.damagedRecords
            ) { tenantID, record in
                if let kept = record.tenant?.eventRetentionSeconds, kept > 0, !record.deleted {
                    found.append((tenantID, .seconds(kept)))
                }
            }
            return (found, next)
        }
    }

    // MARK: Verification

    /// Goes on with the chains where the last sweep ended. A fault is logged each time it is reached. Its chain is not
    /// followed further in this round, and the other chains are.
    func follow() throws {
        let start = state.withLock { $0.followed }
        let end = try resources.store.read { transaction in
            var followed = start
            var budget = bounds.eventsFollowedMax
            while budget > 0 {
                guard var next = try place(after: followed, in: transaction) else { return Followed?.none }
                do {
                    try skipDeleted(&next, in: transaction)
                    budget -= try follow(&next, limit: budget, in: transaction)
                } catch StoreError.corrupt {
                    report(next.tenant, next.place.sequence &+ 1)
                    next.isDone = true
                    budget -= 1
                }
                followed = next
            }
            return followed
        }
        state.withLock { $0.followed = end }
    }

    /// The place to go on from; nil after the last tenant.
    private func place(after followed: Followed?, in transaction: borrowing ReadTransaction) throws -> Followed? {
        if let followed, !followed.isDone { return followed }
        guard let tenant = try transaction.tenantWithEvents(after: followed?.tenant) else { return nil }
        return Followed(tenant: tenant, place: .empty, isDone: false)
    }

    /// Goes on behind the events that were deleted by age since the last step.
    private func skipDeleted(_ next: inout Followed, in transaction: borrowing ReadTransaction) throws {
        if let cut = try transaction.eventCheckpoint(tenant: next.tenant)?.head, cut.sequence > next.place.sequence {
            next.place = cut
        }
    }

    /// Follows a tenant's chain; returns how many events it followed, at least 1.
    private func follow(
        _ next: inout Followed, limit: Int, in transaction: borrowing ReadTransaction
    ) throws -> Int {
        switch try transaction.followEvents(tenant: next.tenant, from: &next.place, limit: limit) {
        case .intact(let count):
            next.isDone = count < limit
            return max(1, count)
        case .broken(let sequence):
            report(next.tenant, sequence)
            next.isDone = true
            return 1
        }
    }

    private func report(_ tenant: Text, _ sequence: UInt64) {
        faults.add()
        resources.log.error(
            "an event is missing or altered; posternd --verify-store tells more",
            ["tenant": .text(tenant.string), "sequence": .text("\(sequence)")])
    }
}

/// The result of one write that deletes a tenant's old events.
private struct TrimmedSlice: Sendable {
    let isMore: Bool
    /// A damaged row of the history of settings, which must not keep the events.
    let damage: StoreError?
}

extension WriteTransaction {
    /// Deletes up to `limit` of a tenant's events from before `time`, and the rows by which the history of the tenant's
    /// settings finds events that are deleted.
    fileprivate func trimEvents(
        of tenantID: Text, before time: Timestamp, limit: Int, now: Timestamp
    ) throws -> TrimmedSlice {
        let events = try deleteEvents(tenant: tenantID, limit: limit, now: now) { event in
            try EventRecord(stored: event.payload).timeMicros < time.microseconds
        }
        guard let cut = try reading.eventCheckpoint(tenant: tenantID)?.head.sequence else {
            return TrimmedSlice(isMore: events.isMore, damage: nil)
        }
        do {
            let isMore = try forgetSettingsChanges(of: tenantID, upTo: cut, limit: limit)
            return TrimmedSlice(isMore: events.isMore || isMore, damage: nil)
        } catch let error as StoreError {
            guard case .corrupt = error else { throw error }
            return TrimmedSlice(isMore: events.isMore, damage: error)
        }
    }
}
