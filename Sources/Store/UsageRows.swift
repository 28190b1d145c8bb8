public import Base
internal import CLMDB
import Messages

extension ReadTransaction {
    /// The tenant's usage, exact as of this transaction on every node of a cluster. A damaged sum is unknown
    /// (`TenantUsage.unknown`), and an unknown one holds only what changed since.
    public func usage(ofTenant tenantID: Text) throws(StoreError) -> TenantUsage {
        do throws(StoreError) {
            return TenantUsage(try get(Schema.tenantUsage, TenantPrefix(tenantID)) ?? StoredTenantUsage())
        } catch {
            guard case .corrupt = error else { throw error }
            return .unknown
        }
    }

    /// The usage of all tenants, counted row by row; the totals must be equal to it. A damaged row takes as much space
    /// as a genuine one, and counts like it if damage does not hide whose it is.
    func countedUsage() throws(StoreError) -> [[UInt8]: TenantUsage] {
        var changes = UsageChanges()
        for table in environment.tables.declarations where table.owner != .nobody {
            try countRows(of: table, under: [], in: &changes)
        }
        return Dictionary(uniqueKeysWithValues: changes.all.map { ($0.tenant, $0.usage) })
    }

    /// The same for one tenant. Its rows lie together, except in tables in which a field names the tenant: of these
    /// all rows are read.
    func countedUsage(ofTenant tenantID: Text) throws(StoreError) -> TenantUsage {
        var changes = UsageChanges()
        let prefix = TenantPrefix(tenantID).bytes
        for table in environment.tables.declarations where table.owner != .nobody {
            try countRows(of: table, under: table.owner.isKeyPrefix ? prefix : [], in: &changes)
        }
        return changes.all.first { $0.tenant == tenantID.bytes }?.usage ?? TenantUsage()
    }

    private func countRows(
        of table: TableDeclaration, under prefix: [UInt8], in changes: inout UsageChanges
    ) throws(StoreError) {
        beginBorrow()
        defer { endBorrow() }
        try prefix.span.withUnsafeBytes { prefix throws(StoreError) -> Void in
            let cursor = try Cursor(self, tableID: table.id)
            var entry = try cursor.first(of: prefix, .first)
            while let (key, value) = entry, key.starts(with: prefix) {
                let row = storedRow(value, tableID: table.id, key: key)
                _ = withCounted(value, row, of: table.owner, tableID: table.id, key: key) { tenant, byteCount in
                    changes.put(
                        tenant: tenant, owner: table.owner, key: key, byteCount: byteCount, replacing: nil)
                }
                entry = try cursor.move(MDB_NEXT)
            }
        }
    }
}

extension WriteTransaction {
    /// Once per transaction, before its commit: writes one row for each tenant whose rows changed. Each tenant has one
    /// row in this table.
    func writeUsage() throws(StoreError) {
        for (tenant, change) in batch.usage.all {
            let tenantID = Text(unchecked: tenant)
            var usage = try usageToChange(ofTenant: tenantID, isUncertain: batch.usage.isUncertain(tenant))
            usage.add(change)
            try setUsage(usage, ofTenant: tenantID)
        }
    }

    /// A tenant without rows has no sum: the nodes of a cluster have the same rows.
    func setUsage(_ usage: TenantUsage, ofTenant tenantID: Text) throws(StoreError) {
        if usage == TenantUsage() {
            try delete(Schema.tenantUsage, TenantPrefix(tenantID))
        } else {
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
