// What a start checks of the data file before LMDB maps it: everything by which a whole table, or a row of the store's
// own, could be gone without a trace. LMDB's records of its trees have no MAC, and a MAC cannot miss a row that is not
// found. The rest is left to `StoreReport`, which reads the whole file.

extension DataFile {
    /// Throws `.damaged` if a table is not whole: it is not in the list of tables, or LMDB would look for its rows in
    /// the wrong place, in an older version of the table for example.
    ///
    /// Reads the list of tables, the list of free pages, the tables of one page, and of each other table the way to its
    /// first row. The time does not grow with the number of records.
    consuming func checkTables(
        of declared: [TableDeclaration], _ authenticator: any RecordAuthenticator
    ) throws(StoreError) {
        let walk = try PageWalk(self)
        let (free, main) = try walk.roots()
        let found = walk.tables(main)
        let isListSound = walk.findings.isEmpty
        try walk.checkNames(of: declared, in: found, authenticator)
        guard isListSound else { throw .damaged(operation: "list of tables") }
        try Self.refuseUnknown(found, declared)
        // The check of names reads tables of other versions, whose damage does not keep a store from starting.
        walk.findings = Findings()
        let metaName = Schema.meta.name.description
        if let meta = found.first(where: { $0.name == metaName }) { try walk.checkMeta(meta, authenticator) }
        let names = Set(declared.map(\.name.description)).subtracting([metaName])
        for table in found where names.contains(table.name) {
            if table.depth > 1 { walk.claimFirstPages(of: table) } else { walk.walk(table) { _ in } }
        }
        walk.checkFreePages(free)
        guard walk.findings.isEmpty else { throw .damaged(operation: "place of a table") }
    }

    /// A server that does not know a table would serve without the rules that its rows stand for, and would leave the
    /// rows of a deleted user to the next user with the same id. The journal's entries of unknown tables are refused,
    /// too.
    private static func refuseUnknown(
        _ found: [PageWalk.Tree], _ declared: [TableDeclaration]
    ) throws(StoreError) {
        let names = Set(declared.map(\.name.description))
        if let unknown = found.first(where: { !names.contains($0.name) && $0.rowCount > 0 }) {
            throw .unknownTable(unknown.name)
        }
    }
}

extension PageWalk {
    /// Checks every row of the store's own. A row with a damaged key is not found under its right key, and a start
    /// would take the store for one that never had the row.
    fileprivate func checkMeta(_ table: Tree, _ authenticator: any RecordAuthenticator) throws(StoreError) {
        var soundCount = 0
        var unsoundCount = 0
        walk(table) { row in
            let payload = RecordSeal.open(
                row.value, table: Schema.meta.id, key: row.key, authenticator: authenticator)
            if payload == nil { unsoundCount += 1 } else { soundCount += 1 }
        }
        // If no row is sound, the master key is another store's. The first read of a row reports that.
        guard findings.isEmpty, unsoundCount == 0 || soundCount == 0 else { throw .damaged(operation: "meta") }
    }

    /// Adds a finding if a page that was claimed is free. Then it is one of an older version of its table.
    fileprivate func checkFreePages(_ free: Tree) {
        walk(free) { row in
            _ = forEachFreePage(in: row) { page in
                if isClaimed(page) { findings.add("free pages: page in use", at: "page \(row.page)") }
            }
        }
    }
}
