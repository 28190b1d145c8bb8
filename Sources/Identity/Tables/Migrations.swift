import Messages
public import Store

extension Migration {
    /// The steps that upgrade the domain's records.
    public static let domain = [Migration(to: 3) { try $0.purgeAgain() }]
}

extension WriteTransaction {
    /// Servers of version 2 left the events of the tenants they deleted: the start goes through these deletions again.
    fileprivate func purgeAgain() throws {
        var purged: [(key: TenantPrefix, tombstone: StoredTenant)] = []
        try scan(Tables.tenants) { row in
            let record = try row.record
            if record.purged { purged.append((try row.key, record)) }
            return true
        }
        for (key, tombstone) in purged {
            var tombstone = tombstone
            tombstone.purged = false
            try put(Tables.tenants, key, tombstone)
        }
    }
}
