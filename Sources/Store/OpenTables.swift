internal import Base
internal import CLMDB

/// The tables of an open environment, found by their ids. Any thread, but `open` only at a start.
struct OpenTables: @unchecked Sendable {
    // Unchecked: `handles` points to memory that only `open` writes, before any other thread knows the environment.

    /// Every table, the store's own first.
    let declarations: [TableDeclaration]
    /// Indexed by table id; 0 for a table that is not open.
    private let handles: UnsafeMutablePointer<MDB_dbi>
    /// Indexed by table id.
    private let owners: [RowOwner]
    /// Indexed by table id; nil for a table without news.
    private let tellers: [TableDeclaration?]

    /// No table is open yet. The owner calls `deallocate` once, at its end.
    init(_ declarations: [TableDeclaration]) {
        self.declarations = declarations
        self.handles = .allocate(capacity: 256)
        handles.initialize(repeating: 0, count: 256)
        var owners = [RowOwner](repeating: .nobody, count: 256)
        var tellers = [TableDeclaration?](repeating: nil, count: 256)
        for table in declarations {
            owners[Int(table.id)] = table.owner
            if table.news != .none { tellers[Int(table.id)] = table }
        }
        (self.owners, self.tellers) = (owners, tellers)
    }

    func deallocate() { handles.deallocate() }

    /// Opens the tables that the file has. Called at a start only, because mdb_dbi_open must not run beside other
    /// transactions. No table is ever closed.
    func open(in environment: OpaquePointer, makingMissing: Bool) throws(StoreError) {
        let transaction = try LMDB.beginTransaction(in: environment, isReadOnly: !makingMissing)
        do throws(StoreError) {
            for table in declarations where !isOpen(table.id) {
                let flags = makingMissing ? UInt32(MDB_CREATE) : 0
                let code = mdb_dbi_open(transaction, table.name.description, flags, handles + Int(table.id))
                if !makingMissing, code == MDB_NOTFOUND { continue }
                try StoreError.check(code, "mdb_dbi_open")
            }
        } catch {
            mdb_txn_abort(transaction)
            throw error
        }
        try StoreError.check(mdb_txn_commit(transaction), "mdb_txn_commit")
    }

    /// False if the file has no such table, and nobody has made the missing tables yet.
    func isOpen(_ id: UInt8) -> Bool { handles[Int(id)] != 0 }

    /// The table's LMDB handle. A table that was not declared is our own mistake.
    @inline(__always)
    func handle(of id: UInt8) -> MDB_dbi {
        let handle = handles[Int(id)]
        precondition(handle != 0, "table \(id) was not declared")
        return handle
    }

    /// The place in the table's keys that names the tenant.
    @inline(__always)
    func owner(of id: UInt8) -> RowOwner { owners[Int(id)] }

    /// The topic that a change of the row announces; nil for a table without news.
    @inline(__always)
    func topic(ofRow key: UnsafeRawBufferPointer, in id: UInt8) -> ChangeTopic? { tellers[Int(id)]?.topic(ofRow: key) }

    /// Whether changes of the table's rows are told by their hashes.
    @inline(__always)
    func marksRows(of id: UInt8) -> Bool { tellers[Int(id)]?.news == .marked }

    /// LMDB's own table of tables, and all that were declared.
    var allHandles: [MDB_dbi] { [1] + declarations.map { handles[Int($0.id)] } }

    /// Nil for an id that this version does not know.
    subscript(id: UInt8) -> TableDeclaration? { declarations.first { $0.id == id } }

    func corrupt(_ id: UInt8) -> StoreError { .corrupt(table: self[id]?.name.description ?? "\(id)") }
}
