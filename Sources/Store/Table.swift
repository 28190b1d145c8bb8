public import Base

/// A named table with the types of its keys and records, and everything else there is to know about it. It is declared
/// once, as a static constant.
///
/// `Record` is a `Message`, or `[UInt8]` for a table of plain bytes. Every record has a MAC under a key that belongs to
/// the table's id. A record that expires is an `ExpiringRecord`.
public struct Table<Key: StoreKey, Record: Sendable>: Sendable {
    /// Part of every record's MAC and of expiry rows: never reused for another table.
    public let id: UInt8
    public let name: StaticString
    public let owner: RowOwner
    public let purge: RowPurge
    public let news: RowNews

    /// Ids below `Schema.firstDomainTableID` are the store's own.
    @inlinable
    public init(id: UInt8, name: StaticString, owner: RowOwner, purge: RowPurge, news: RowNews = .none) {
        self.id = id
        self.name = name
        self.owner = owner
        self.purge = purge
        self.news = news
    }
}

/// The place where a table's rows name their tenant. The rows count in the tenant's stored bytes (`TenantUsage`).
public enum RowOwner: Sendable, Equatable {
    /// Rows of the project, and rows that only find others by time.
    case nobody
    /// The key begins with the tenant's id and a zero byte.
    case keyPrefix
    /// As `keyPrefix`, and the store keeps the number of a tenant's rows in the table (`TenantUsage.countedRowCount`).
    /// For one table only.
    case countedKeyPrefix
    /// The record holds the tenant's id in this text field; the key does not. A row never changes its owner.
    case field(Int)

    /// Whether the key begins with the tenant's id and a zero byte.
    public var isKeyPrefix: Bool { self == .keyPrefix || self == .countedKeyPrefix }
}

/// How a table's rows are deleted when their tenant is deleted.
public enum RowPurge: Sendable {
    /// The rows whose keys begin with the tenant's id and a zero byte are deleted.
    case withTenant
    /// The rows go in another way, or some stay; the text says how and why.
    case otherwise(StaticString)
    /// No row belongs to a tenant.
    case noTenant
}

/// The announcement that a change of a table's rows makes. The store makes it by itself, also for a change of another
/// node when the change reaches this store.
///
/// Only a table with news can be followed (`RowCopies`, `TableMark`, `Store.follow`, `Table.topic`).
public enum RowNews: Sendable {
    /// No announcement: nobody keeps a copy of the rows, or waits for them to change.
    case none
    /// Some row of the table changed. For small tables that are followed as a whole.
    case ofTable
    /// Some row of this tenant changed. The table's keys begin with the tenant's id and a zero byte.
    case ofTenant
    /// This row changed.
    case ofRow
    /// Some row changed whose key has this hash, for `RowMarks`. For large tables whose rows change often.
    case marked
}

extension Table {
    /// The topic of a table with news `.ofTable`.
    public var topic: ChangeTopic { topic(.ofTable, []) }

    /// The topic of a tenant's rows in a table with news `.ofTenant`.
    public func topic(ofTenant tenantID: Text) -> ChangeTopic { topic(.ofTenant, tenantID.bytes) }

    /// The topic of one row in a table with news `.ofRow`.
    public func topic(of key: Key) -> ChangeTopic { topic(.ofRow, key.bytes) }

    private func topic(_ wanted: RowNews, _ name: [UInt8]) -> ChangeTopic {
        // Proof: which table it is, and what of it is followed, are constants of the code.
        precondition(news == wanted, "the table \(self.name) does not announce that")
        return ChangeTopic(Text(stringLiteral: self.name), name)
    }
}
