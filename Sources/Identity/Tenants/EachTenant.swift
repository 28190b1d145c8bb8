import Base
import Messages
import Rules
import Store

extension ReadTransaction {
    /// Gives `body` the records of the next tenants after `last`, at most `limit`, those of deleted tenants too.
    /// A damaged record is told to `damaged` and does not keep the others. If the tenant is known to be deleted, `body`
    /// gets a tombstone in its place.
    ///
    /// Returns the tenant to go on after; nil if there are no more.
    func eachTenant(
        after last: TenantPrefix?, limit: Int, passingOver damaged: DamagedRecords,
        _ body: (Text, StoredTenant) -> Void
    ) throws -> TenantPrefix? {
        let found = try keys(of: Tables.tenants, after: last, limit: limit)
        for key in found {
            do {
                if let record = try get(Tables.tenants, key) { body(key.tenant, record) }
            } catch StoreError.corrupt(let table) {
                if try isRevokedAsDeleted(key.tenant) {
                    body(key.tenant, StoredTenant(deleted: true))
                } else {
                    damaged.passOver(key.tenant, table: table)
                }
            }
        }
        return found.count < limit ? nil : found.last
    }

    /// The record of a tenant that is to be deleted; TENANT_NOT_FOUND. A damaged record does not keep its tenant from
    /// being deleted: an empty one takes its place.
    func tenantToDelete(_ tenantID: Text) throws -> StoredTenant {
        do {
            return try liveTenant(tenantID)
        } catch StoreError.corrupt {
            guard try !isRevokedAsDeleted(tenantID) else { throw Failure.tenantNotFound(tenantID) }
            return StoredTenant()
        }
    }

    /// Whether the tenant's deletion stands among its last revocations, which are kept for two weeks. This shows that a
    /// tenant was deleted whose own record is damaged. An id is never used again.
    func isRevokedAsDeleted(_ tenantID: Text) throws -> Bool {
        var (isDeleted, rest) = (false, 8)
        try scanKeys(of: Tables.revocations, prefix: TenantPrefix(tenantID), reversed: true) { key in
            do {
                isDeleted = try get(Tables.revocations, key)?.kind == .tenantDeleted
            } catch StoreError.corrupt {
                // Nothing can be said from a damaged one.
            }
            rest -= 1
            return !isDeleted && rest > 0
        }
        return isDeleted
    }

    /// Whether the default pool is lost: it comes before the first key and the first user.
    func hasLostDefaultPool() throws -> Bool {
        guard try !exists(Tables.tenants, TenantPrefix(.empty)) else { return false }
        return try !isEmpty(Tables.apiKeys) || !isEmpty(Tables.users)
    }
}
