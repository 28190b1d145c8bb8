import Base
import Messages
import Store
import Synchronization

extension CallerDirectory {
    /// The keys that are looked at between two other jobs.
    private static let keysTogether = 200

    /// Adds the keys that were made before there was an index of the keys of each tenant, and notes project-admin keys.
    ///
    /// The first sweep of a process does this, because the time of a start must not grow with the number of keys. It
    /// passes over damaged keys.
    func indexOldKeys() async throws {
        guard !hasIndexedOldKeys.load(ordering: .acquiring) else { return }
        var last: TextKey?
        repeat {
            let (missing, next) = try resources.store.read { try unindexedKeys(after: last, in: $0) }
            if !missing.isEmpty {
                try await resources.store.write { transaction in
                    for key in missing where try transaction.exists(Tables.apiKeys, TextKey(key.apiKeyID)) {
                        // The tenant may have been deleted meanwhile, and nothing would remove the new row again.
                        if try transaction.reading.isUnindexed(key) { try transaction.noteTenant(of: key) }
                    }
                }
            }
            last = next
            await Task.yield()
        } while last != nil
        hasIndexedOldKeys.store(true, ordering: .releasing)
    }

    /// Looks at the next keys. Returns the keys that are missing in the index, and the key after which to go on; nil at
    /// the end.
    private func unindexedKeys(
        after last: TextKey?, in transaction: borrowing ReadTransaction
    ) throws -> (missing: [ApiKey], next: TextKey?) {
        let found = try transaction.keys(of: Tables.apiKeys, after: last, limit: Self.keysTogether)
        var missing: [ApiKey] = []
        for id in found {
            do {
                guard let key = try transaction.get(Tables.apiKeys, id)?.apiKey else { continue }
                if key.isLastingAdmin { adminKeys.note(key) }
                if try transaction.isUnindexed(key) { missing.append(key) }
            } catch StoreError.corrupt(let table) {
                resources.damagedRecords.passOver(rowOf: table)
            }
        }
        return (missing, found.count < Self.keysTogether ? nil : found.last)
    }
}

extension ReadTransaction {
    /// False for a key of a deleted tenant, whose rows of the index are gone with it.
    fileprivate func isUnindexed(_ key: ApiKey) throws -> Bool {
        guard let tenantID = key.onlyTenantID else { return false }
        if try exists(Tables.apiKeysOfTenants, TenantTextKey(tenantID, key.apiKeyID)) { return false }
        return try tenantID.isEmpty || get(Tables.tenants, TenantPrefix(tenantID))?.deleted == false
    }
}
