public import Base

/// A table without its types, for opening the store.
public struct TableDeclaration: Sendable {
    /// Deals with a record whose time has come.
    public typealias Expire =
        @Sendable (_ key: UnsafeRawBufferPointer, borrowing WriteTransaction, _ now: Timestamp) throws -> Void

    public let id: UInt8
    public let name: StaticString
    public let owner: RowOwner
    public let purge: RowPurge
    public let news: RowNews
    /// The kind of the topics that its rows announce.
    let kind: Text
    /// Nil for a table whose records do not expire.
    let expire: Expire?

    init<Key, Record>(_ table: Table<Key, Record>, expire: Expire?) {
        self.id = table.id
        self.name = table.name
        self.owner = table.owner
        self.purge = table.purge
        self.news = table.news
        self.kind = Text(stringLiteral: table.name)
        self.expire = expire
    }

    /// The topic that a change of the row under `key` announces.
    @inline(__always)
    func topic(ofRow key: UnsafeRawBufferPointer) -> ChangeTopic? {
        switch news {
        case .none, .marked: nil
        case .ofTable: ChangeTopic(kind)
        case .ofTenant: ChangeTopic(kind, [UInt8](key.prefix { $0 != 0 }))
        case .ofRow: ChangeTopic(kind, [UInt8](key))
        }
    }
}

extension Table {
    public var declaration: TableDeclaration { TableDeclaration(self, expire: nil) }
}

extension Schema {
    static let own = [
        meta.declaration, expiry.declaration, events.declaration, eventHeads.declaration, tenantUsage.declaration,
        eventCheckpoints.declaration, pieces.declaration,
    ]

    /// The store's own tables and the domain's. An id or a name that two tables have is our own mistake.
    static func tables(with domain: [TableDeclaration]) -> [TableDeclaration] {
        let tables = own + domain
        precondition(Set(tables.map(\.id)).count == tables.count, "two tables have one id")
        precondition(Set(tables.map(\.name.description)).count == tables.count, "two tables have one name")
        // Proof: the tables are constants of the code.
        precondition(tables.count { $0.owner == .countedKeyPrefix } <= 1, "two tables are counted")
        let isFree = domain.allSatisfy { $0.id >= firstDomainTableID && $0.id != witnessID }
        precondition(isFree, "a table of the domain has an id of the store's own")
        return tables
    }
}
