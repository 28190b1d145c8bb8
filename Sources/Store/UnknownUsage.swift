public import Base

// The sum of a tenant's space that is lost or damaged. It is derived from the tenant's rows, so that the rows can be
// counted again. Until then it is unknown, and keeps no write from being made: in a cluster, a node has to make the
// writes of all others (docs/decisions/0149).

extension TenantUsage {
    /// The value at which an unknown sum begins, far below any sum of rows. Every later change is added to it, as to a
    /// known sum.
    static let unknown = TenantUsage(rowCount: -1 << 40)

    /// No known sum falls below the middle between zero and `unknown`, and no unknown sum rises above it.
    var isUnknown: Bool { rowCount < Self.unknown.rowCount / 2 }
}

extension Store {
    /// Counts the rows of a tenant whose sum is unknown, and makes the sum right. Returns false if the sum is known.
    ///
    /// The rows are not counted in the write, for which everybody would wait: also a tenant without rows costs a look
    /// at all sessions. What changes between the count and the write is in the unknown sum.
    public func countUnknownUsage(ofTenant tenantID: Text) async throws -> Bool {
        let missing = try read { transaction -> TenantUsage? in
            let sum = try transaction.usage(ofTenant: tenantID)
            guard sum.isUnknown else { return nil }
            var missing = try transaction.countedUsage(ofTenant: tenantID)
            missing.subtract(sum)
            return missing
        }
        guard let missing else { return false }
        return try await write(for: .removal) { transaction in
            var sum = try transaction.reading.usage(ofTenant: tenantID)
            // A sweep and a purge of the tenant may count at the same time.
            guard sum.isUnknown else { return false }
            sum.add(missing)
            try transaction.setUsage(sum, ofTenant: tenantID)
            return true
        }
    }
}
