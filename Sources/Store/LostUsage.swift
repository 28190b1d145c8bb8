public import Base
import Synchronization

// How a write notices that the sum of a tenant's space is lost. A new sum would begin at zero, and the tenant's quota
// with it. It begins as an unknown sum instead (`TenantUsage.unknown`), and the rows are counted afterwards.

extension WriteTransaction {
    /// The sum to which a change of the tenant's rows is added; an unknown one if the change itself is uncertain.
    func usageToChange(ofTenant tenantID: Text, isUncertain: Bool) throws(StoreError) -> TenantUsage {
        let environment = reading.environment
        var usage = try reading.usage(ofTenant: tenantID)
        if isUncertain {
            if !usage.isUnknown { usage.add(.unknown) }
        } else if usage == TenantUsage(), try environment.hasLostUsage(ofTenant: tenantID) {
            usage = .unknown
        }
        if usage.isUnknown { environment.noteUnknownUsage(ofTenant: tenantID) }
        return usage
    }
}

extension Environment {
    /// A tenant that is not noted for want of a place is noted with its next write.
    private static let tenantsToCountMax = 1_000

    /// Whether the tenant had rows before the writer's transaction, and no sum. A tenant that has rows has a sum.
    ///
    /// Reads what is committed: the writer's transaction may hold the tenant's first rows. The writer's thread only.
    fileprivate func hasLostUsage(ofTenant tenantID: Text) throws(StoreError) -> Bool {
        try Store.throwingStoreErrors {
            try ThreadReaders.reader(for: self).read { try $0.hasLostUsage(ofTenant: tenantID) }
        }
    }

    func noteUnknownUsage(ofTenant tenantID: Text) {
        tenantsToCount.withLock { tenants in
            if tenants.count < Self.tenantsToCountMax { tenants.insert(tenantID) }
        }
    }

    fileprivate func takeTenantsToCount() -> Set<Text> {
        tenantsToCount.withLock { tenants in
            defer { tenants = [] }
            return tenants
        }
    }
}

extension ReadTransaction {
    fileprivate func hasLostUsage(ofTenant tenantID: Text) throws(StoreError) -> Bool {
        // The sums of a store whose upgrade was put off are not complete; the upgrade counts all rows.
        guard try hasUsage(), try usage(ofTenant: tenantID) == TenantUsage() else { return false }
        return try withBytes(of: TenantPrefix(tenantID)) { prefix throws(StoreError) -> Bool in
            for table in environment.tables.declarations where table.owner.isKeyPrefix {
                let cursor = try Cursor(self, tableID: table.id)
                // The row may be damaged.
                if let key = try cursor.first(of: prefix, .first)?.key, key.starts(with: prefix) { return true }
            }
            return false
        }
    }
}

extension Store {
    /// Counts the rows of the tenants that were written to while their sums were unknown, and returns the tenants that
    /// it counted. Throws if it cannot count the first. The tenants that it did not reach come with the next call.
    public func countUnknownUsage() async throws -> Set<Text> {
        var left = environment.takeTenantsToCount()
        defer { for tenantID in left { environment.noteUnknownUsage(ofTenant: tenantID) } }
        var counted: Set<Text> = []
        while let tenantID = left.first {
            do {
                if try await countUnknownUsage(ofTenant: tenantID) { counted.insert(tenantID) }
            } catch {
                guard !counted.isEmpty else { throw error }
                break
            }
            left.remove(tenantID)
        }
        return counted
    }
}
