public import Base

/// A named table with the types of its keys and records: a value that says everything there is to know about it. It is
/// declared once, as a static constant.
///
/// `Record` is a `Message`, or `[UInt8]` for a table of plain bytes. Every record has a MAC under a key that belongs to
/// the table's id. A record that ends by itself is an `ExpiringRecord`.
public struct Table<Key: StoreKey, Record: Sendable>: Sendable {
    /// Part of every record's MAC and of expiry rows: never reused for another table.
    public let id: UInt8
    public let name: StaticString
    public let owner: RowOwner
    public let purge: RowPurge

    /// Ids below `Schema.firstDomainTableID` are the store's own.
    @inlinable
    public init(id: UInt8, name: StaticString, owner: RowOwner, purge: RowPurge) {
        self.id = id
        self.name = name
        self.owner = owner
        self.purge = purge
    }

    @inlinable
    public var declaration: TableDeclaration {
        TableDeclaration(id: id, name: name, owner: owner, purge: purge, expire: nil)
    }
}

/// Where a table's rows say whose they are: the tenant's stored bytes (`TenantUsage`) count them.
public enum RowOwner: Sendable, Equatable {
    /// Rows of the project, and rows that only find others by time.
    case nobody
    /// The key begins with the tenant's id and a zero byte.
    case keyPrefix
    /// The record holds the tenant's id in this text field; the key does not say. A row never changes its owner.
    case field(Int)
}

/// How a table's rows go when their tenant is deleted.
public enum RowPurge: Sendable {
    /// The rows whose keys begin with the tenant's id and a zero byte are deleted.
    case withTenant
    /// The rows go in another way, or some stay; the text says how and why.
    case otherwise(StaticString)
    /// No row is a tenant's.
    case noTenant
}

/// A table without its types: what opening the store takes.
public struct TableDeclaration: Sendable {
    /// Deals with a record whose time has come.
    public typealias Expire =
        @Sendable (_ key: UnsafeRawBufferPointer, borrowing WriteTransaction, _ now: Timestamp) throws -> Void

    public let id: UInt8
    public let name: StaticString
    public let owner: RowOwner
    public let purge: RowPurge
    /// Nil for a table whose records do not end by themselves.
    let expire: Expire?

    @usableFromInline
    init(id: UInt8, name: StaticString, owner: RowOwner, purge: RowPurge, expire: Expire?) {
        self.id = id
        self.name = name
        self.owner = owner
        self.purge = purge
        self.expire = expire
    }
}
