/// A named table with the types of its keys and records. A value, not a handle: declare it once as a static constant.
///
/// `Record` is a `Message`, or `[UInt8]` for a table of plain bytes.
public struct Table<Key: StoreKey, Record: Sendable>: Sendable {
    /// Part of every record's MAC and of expiry rows: never reused for another table.
    public let id: UInt8
    public let name: StaticString
    public let owner: RowOwner

    /// Ids below `Schema.firstDomainTableID` are the store's own.
    @inlinable
    public init(id: UInt8, name: StaticString, owner: RowOwner = .nobody) {
        self.id = id
        self.name = name
        self.owner = owner
    }

    @inlinable
    public var declaration: TableDeclaration { TableDeclaration(id: id, name: name, owner: owner) }
}

/// Where a table's rows say whose they are: the tenant's stored bytes (`TenantUsage`) count them.
public enum RowOwner: Sendable, Equatable {
    /// Rows of the project, and rows that only find others by time.
    case nobody
    /// The key begins with the tenant's id and a zero byte.
    case keyPrefix
    /// The record holds the tenant's id in this text field; the key does not say. A row never changes its owner.
    case field(UInt8)
}

/// A table without its types: what opening the store takes.
public struct TableDeclaration: Sendable {
    public let id: UInt8
    public let name: StaticString
    public let owner: RowOwner

    @inlinable
    public init(id: UInt8, name: StaticString, owner: RowOwner = .nobody) {
        self.id = id
        self.name = name
        self.owner = owner
    }
}
