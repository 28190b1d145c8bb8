import Messages
public import Store

extension Migration {
    /// The steps that upgrade the domain's records.
    public static let domain = [
        Migration(to: 3) { try $0.purgeAgain() }, Migration(to: 4) { try $0.orderUsersByCreation() },
    ]
}

extension ReadTransaction {
    /// Whether users are counted and found by the time they were created.
    public func hasUserIndexes() throws -> Bool { try isUpgraded(to: 4) }
}

extension WriteTransaction {
    /// Servers of version 3 kept no order of creation. A damaged user is left out: its record is refused when it is
    /// read, and the others are served.
    fileprivate func orderUsersByCreation() throws {
        var last: UserKey?
        while true {
            let keys = try reading.keys(of: Tables.users, after: last, limit: 1_000)
            for key in keys {
                do {
                    guard let user = try reading.user(key) else { continue }
                    try put(Tables.userByCreation, user.creationKey, [])
                } catch StoreError.corrupt {
                    continue
                }
            }
            guard let end = keys.last else { return }
            last = end
        }
    }

    /// Servers of version 2 left behind the events of the tenants that they deleted: the start repeats these deletions.
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
