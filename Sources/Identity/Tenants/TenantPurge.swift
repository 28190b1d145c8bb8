import Base
import Messages
import Store

extension Store {
    /// Removes every row of a deleted tenant, in transactions small enough not to keep others waiting; the tombstone
    /// stays. May be interrupted and called again.
    func purgeTenant(_ tenantID: Text) async throws {
        var sliceMax = 500
        var isDone = false
        while !isDone {
            do {
                isDone = try await write(for: .removal) { [sliceMax] transaction in
                    try !transaction.purgeSlice(of: tenantID, limit: sliceMax)
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
    /// Deletes up to `limit` rows; whether there may be more.
    fileprivate func purgeSlice(of tenantID: Text, limit: Int) throws -> Bool {
        var sessionIDs: [[UInt8]] = []
        try scan(Tables.sessionByUser, prefix: TenantPrefix(tenantID), limit: limit) { key, _ in
            sessionIDs.append([UInt8](key.suffix(16)))
            return true
        }
        for id in sessionIDs { try delete(Tables.sessions, SessionKey(id)) }
        let prefix = TenantPrefix(tenantID)
        let counts = [
            try deleteAll(Tables.sessionByUser, prefix: prefix, limit: limit),
            try deleteAll(Tables.users, prefix: prefix, limit: limit),
            try deleteAll(Tables.userByEmail, prefix: prefix, limit: limit),
            try deleteAll(Tables.userByPhone, prefix: prefix, limit: limit),
            try deleteAll(Tables.userByProvider, prefix: prefix, limit: limit),
            try deleteAll(Tables.hashSecrets, prefix: prefix, limit: limit),
            try deleteAll(Tables.denials, prefix: prefix, limit: limit),
            try deleteAll(Tables.denialCounts, prefix: prefix, limit: limit),
            try deleteAll(Tables.denialHeads, prefix: prefix, limit: limit),
            try deleteAll(Tables.passwordHashKinds, prefix: prefix, limit: limit),
            try deleteAll(Tables.oobCodes, prefix: prefix, limit: limit),
            try deleteAll(Tables.oobCodeBySubject, prefix: prefix, limit: limit),
            try deleteAll(Tables.outbox, prefix: prefix, limit: limit),
            try deleteAll(Tables.outboxDue, prefix: prefix, limit: limit),
            try deleteAll(Tables.emailConfigs, prefix: prefix, limit: limit),
            try deleteAll(Tables.providers, prefix: prefix, limit: limit),
            try deleteAll(Tables.identityIssuers, prefix: prefix, limit: limit),
            try deleteAll(Tables.idempotencyCountsBySubject, prefix: prefix, limit: limit),
            try deleteAll(Tables.anonymousUsers, prefix: prefix, limit: limit),
        ]
        return counts.contains(limit)
    }
}
