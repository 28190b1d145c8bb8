import Base
import Messages
import Store

extension Store {
    /// Removes the rows of a deleted tenant, in transactions small enough not to keep others waiting. The tombstone and
    /// the checkpoint of its events stay, and for a while its revocations. May be interrupted and called again.
    func purgeTenant(_ tenantID: Text, now: Timestamp) async throws {
        // Of each of some thirty tables.
        var sliceMax = 30
        var isDone = false
        while !isDone {
            do {
                isDone = try await write(for: .removal) { [sliceMax] transaction in
                    try !transaction.purgeSlice(of: tenantID, limit: sliceMax, now: now)
                }
            } catch StoreError.full where sliceMax >= 16 {
                // The first slices of a full store make room for larger ones.
                sliceMax /= 8
            }
        }
        try await write(for: .removal) { transaction in
            guard var record = try transaction.get(Tables.tenants, TenantPrefix(tenantID)) else { return }
            record.purged = true
            record.secret = []
            try transaction.put(Tables.tenants, TenantPrefix(tenantID), record)
        }
    }
}

extension WriteTransaction {
    /// Deletes up to `limit` rows of each table; returns whether there may be more. A table's declaration says how its
    /// rows are deleted.
    fileprivate func purgeSlice(of tenantID: Text, limit: Int, now: Timestamp) throws -> Bool {
        let hasSessions = try removeSessions(ofTenant: tenantID, limit: limit)
        let hasRows = try deleteRows(ofTenant: tenantID, limit: limit)
        let hasEvents = try deleteEvents(ofDeletedTenant: tenantID, limit: limit, now: now)
        return hasSessions || hasRows || hasEvents
    }
}
