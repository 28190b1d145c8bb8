/// The tables of this version whose names a data file does not have.
///
/// An older version may have made the file. Or a name is damaged, which no MAC holds: LMDB would then make an empty
/// table of that name, and a store without its users or its revocations would be served.
struct LostTables {
    private let missing: [(name: String, id: UInt8)]
    private let authenticator: any RecordAuthenticator

    init(declared: [TableDeclaration], found: [PageWalk.Tree], authenticator: any RecordAuthenticator) {
        let names = Set(found.map(\.name))
        self.missing = declared.map { ($0.name.description, $0.id) }.filter { !names.contains($0.0) }
        self.authenticator = authenticator
    }

    var isEmpty: Bool { missing.isEmpty }

    /// The lost table that a row, found under a name that nobody declared, was written to.
    func table(of row: PageWalk.Row) -> String? {
        missing.first { lost in
            RecordSeal.isGenuine(row.value, table: lost.id, key: row.key, authenticator: authenticator)
        }?.name
    }
}

extension PageWalk {
    /// Throws `.damaged` if the rows of a declared table lie under another name. Reads nothing if no table is missing.
    func checkNames(
        of declared: [TableDeclaration], in found: [Tree], _ authenticator: any RecordAuthenticator
    ) throws(StoreError) {
        let lost = LostTables(declared: declared, found: found, authenticator: authenticator)
        guard !lost.isEmpty else { return }
        let names = Set(declared.map(\.name.description))
        for table in found where !names.contains(table.name) {
            var isLost = false
            walk(table) { row in isLost = isLost || lost.table(of: row) != nil }
            if isLost { throw .damaged(operation: "name of a table") }
        }
    }
}
