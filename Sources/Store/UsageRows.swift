public import Base
internal import CLMDB
import Messages

extension ReadTransaction {
    /// The tenant's usage, exact as of this transaction on every node of a cluster.
    public func usage(ofTenant tenantID: Text) throws(StoreError) -> TenantUsage {
        TenantUsage(try get(Schema.tenantUsage, TenantPrefix(tenantID)) ?? StoredTenantUsage())
    }

    /// The usage of all tenants, counted row by row; the totals must be equal to it. Rows are not verified here,
    /// because a damaged row takes as much space as a genuine one.
    func countedUsage() throws(StoreError) -> [[UInt8]: TenantUsage] {
        var changes = UsageChanges()
        beginBorrow()
        defer { endBorrow() }
        for table in environment.tables where table.owner != .nobody {
            let cursor = try Cursor(self, tableID: table.id)
            var entry = try cursor.move(MDB_FIRST)
            while let (key, value) = entry {
                let stored = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
                let payload = UnsafeRawBufferPointer(rebasing: stored.dropFirst(RecordSeal.byteCount))
                if let tenant = table.owner.tenant(key: key, payload: payload) {
                    changes.put(
                        tenant: tenant, owner: table.owner, key: key, byteCount: stored.count, replacing: nil)
                }
                entry = try cursor.move(MDB_NEXT)
            }
        }
        return Dictionary(uniqueKeysWithValues: changes.all.map { ($0.tenant, $0.usage) })
    }
}

extension WriteTransaction {
    /// Once per transaction, before its commit: writes one row for each tenant whose rows changed. Each tenant has one
    /// row in this table.
    func writeUsage() throws(StoreError) {
        for (tenant, change) in batch.usage.all {
            let tenantID = Text(unchecked: tenant)
            var usage = try reading.usage(ofTenant: tenantID)
            usage.add(change)
            guard usage != TenantUsage() else {
                try delete(Schema.tenantUsage, TenantPrefix(tenantID))
                continue
            }
            try put(Schema.tenantUsage, TenantPrefix(tenantID), usage.stored)
        }
    }

    /// Counts the rows of a store that an older server made, which had no totals or not all.
    func countUsage() throws(StoreError) {
        for (tenant, usage) in try reading.countedUsage() {
            try put(Schema.tenantUsage, TenantPrefix(Text(unchecked: tenant)), usage.stored)
        }
    }
}
