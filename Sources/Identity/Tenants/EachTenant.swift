import Base
import Messages
import Store

extension ReadTransaction {
    /// Gives `body` the records of the next tenants after `last`, at most `limit`, those of deleted tenants too.
    /// A damaged record is told to `damaged` and does not keep the others.
    ///
    /// Returns the tenant to go on after; nil if there are no more.
    func eachTenant(
        after last: TenantPrefix?, limit: Int, passingOver damaged: DamagedTenants,
        _ body: (Text, StoredTenant) -> Void
    ) throws -> TenantPrefix? {
        let found = try keys(of: Tables.tenants, after: last, limit: limit)
        for key in found {
            do {
                if let record = try get(Tables.tenants, key) { body(key.tenant, record) }
            } catch StoreError.corrupt(let table) {
                damaged.passOver(key.tenant, table: table)
            }
        }
        return found.count < limit ? nil : found.last
    }

    /// Whether the default pool is lost: it comes before the first key and the first user.
    func hasLostDefaultPool() throws -> Bool {
        guard try !exists(Tables.tenants, TenantPrefix(.empty)) else { return false }
        return try !isEmpty(Tables.apiKeys) || !isEmpty(Tables.users)
    }
}
