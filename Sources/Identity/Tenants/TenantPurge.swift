import Base
import Messages
import Store

extension Store {
    /// Removes the rows of a deleted tenant, in transactions small enough not to keep others waiting. The tombstone and
    /// the checkpoint of its events stay, and for a while its revocations. May be interrupted and called again.
    ///
    /// Damaged rows are deleted, too; a damaged tombstone is made anew, and a lost or damaged sum of the tenant's space
    /// is counted anew. `onDamage` is called once for each table that had any.
    func purgeTenant(
        _ tenantID: Text, now: Timestamp, onDamage: @Sendable (_ table: String) -> Void
    ) async throws {
        // Of each of some thirty tables.
        var sliceMax = 30
        var isDone = false
        // Not bytes: names of our own.
        var damaged: Set<String> = []
        while !isDone {
            do {
                let slice = try await write(for: .removal) { [sliceMax] transaction in
                    try transaction.purgeSlice(of: tenantID, limit: sliceMax, now: now)
                }
                for table in slice.damaged where damaged.insert(table).inserted { onDamage(table) }
                isDone = !slice.isMore
            } catch StoreError.full where sliceMax >= 16 {
                // The first slices of a full store make room for larger ones.
                sliceMax /= 8
            }
        }
        if try await countUnknownUsage(ofTenant: tenantID) { onDamage("tenant_usage") }
        if try await write(for: .removal, { try $0.finishTombstone(of: tenantID) }) {
            onDamage(Tables.tenants.name.description)
        }
    }
}

/// The result of one write of a purge.
private struct PurgedSlice: Sendable {
    let isMore: Bool
    // Not bytes: names of our own, of the tables whose rows were damaged.
    let damaged: Set<String>
}

extension WriteTransaction {
    /// Deletes up to `limit` rows of each table, and begins no further table when the slice's time is over. A table's
    /// declaration says how its rows are deleted.
    fileprivate func purgeSlice(of tenantID: Text, limit: Int, now: Timestamp) throws -> PurgedSlice {
        // Not bytes: names of our own.
        var damaged: Set<String> = []
        let time = beginSlice()
        let hasSessions = try removeSessions(ofTenant: tenantID, limit: limit) { _ = damaged.insert($0) }
        if hasSessions, time.isOver { return PurgedSlice(isMore: true, damaged: damaged) }
        let hasRows = try deleteRows(ofTenant: tenantID, limit: limit, until: time) { _ = damaged.insert($0) }
        if hasRows, time.isOver { return PurgedSlice(isMore: true, damaged: damaged) }
        let hasEvents = try deleteEvents(ofDeletedTenant: tenantID, limit: limit, now: now) { _ = damaged.insert($0) }
        return PurgedSlice(isMore: hasSessions || hasRows || hasEvents, damaged: damaged)
    }

    /// Notes that only the tombstone is left. Returns whether it was damaged.
    fileprivate func finishTombstone(of tenantID: Text) throws -> Bool {
        var (tombstone, isDamaged) = (StoredTenant(), false)
        do {
            guard let record = try get(Tables.tenants, TenantPrefix(tenantID)) else { return false }
            tombstone = record
        } catch StoreError.corrupt {
            (tombstone.deleted, isDamaged) = (true, true)
        }
        tombstone.purged = true
        tombstone.secret = []
        try put(Tables.tenants, TenantPrefix(tenantID), tombstone)
        return isDamaged
    }
}
