/// A named table with the types of its keys and records. A value, not a handle: declare it once as a static constant.
///
/// `Record` is a `Message`, or `[UInt8]` for a table of plain bytes.
public struct Table<Key: StoreKey, Record: Sendable>: Sendable {
    /// Part of every record's MAC and of expiry rows: never reused for another table.
    public let id: UInt8
    public let name: StaticString

    /// Ids below `Schema.firstDomainTableID` are the store's own.
    @inlinable
    public init(id: UInt8, name: StaticString) {
        self.id = id
        self.name = name
    }

    @inlinable
    public var declaration: TableDeclaration { TableDeclaration(id: id, name: name) }
}

/// A table without its types: what opening the store takes.
public struct TableDeclaration: Sendable {
    public let id: UInt8
    public let name: StaticString

    @inlinable
    public init(id: UInt8, name: StaticString) {
        self.id = id
        self.name = name
    }
}
