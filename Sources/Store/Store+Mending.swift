import Base
internal import CLMDB
import Synchronization

// What a damaged row may leave when it is replaced or deleted: pieces that no mark names, because their keys or the
// mark's were damaged, and wrong sums of tenants (docs/decisions/0155). A store in which a write met such a row has no
// note `mended`, and neither has one that an earlier state of the server made. It is looked through once.

/// What `Store.mend` found.
public struct MendedStore: Sendable, Equatable {
    /// The pieces of no value that were deleted.
    public var pieceCount = 0
    /// The tenants whose sums were wrong. They are counted anew by the next call of `Store.countUnknownUsage`.
    public var tenantCount = 0

    public var isEmpty: Bool { pieceCount == 0 && tenantCount == 0 }

    public init(pieceCount: Int = 0, tenantCount: Int = 0) {
        self.pieceCount = pieceCount
        self.tenantCount = tenantCount
    }
}

extension Store {
    private static let rowsPerTurn = 10_000
    /// So many rows' names are kept in memory at once.
    private static let namesMax = 100_000

    /// Deletes pieces that belong to no value, and marks wrong sums of tenants as unknown. Looks at nothing while the
    /// store has the note that it is mended.
    ///
    /// Reads the keys of all rows once, in turns, and the rows of tenants a second time. Only the deletions and the
    /// marks keep other writes waiting, a slice at a time.
    public func mend() async throws -> MendedStore {
        let mending = environment.mending
        guard environment.storesPieces.load(ordering: .relaxed), !mending.isDone, try !read({ try $0.isMended() })
        else { return MendedStore() }
        try await write(for: .removal) { _ in mending.begin() }
        defer { mending.end() }
        var mended = MendedStore()
        mended.pieceCount = try await deletePiecesOfNoValue()
        mended.tenantCount = try await distrustWrongSums()
        mending.finish()
        do {
            try await write(for: .removal) { transaction in
                if mending.isWhole { try transaction.noteMended() }
            }
        } catch StoreError.full {
            // The next start looks again.
        }
        return mended
    }

    private func deletePiecesOfNoValue() async throws -> Int {
        var pieceCount = 0
        var last: [UInt8]?
        repeat {
            var names: Set<[UInt8]> = []
            repeat {
                last = try turn(of: Schema.pieces.id, after: last) { _, key, _ in
                    _ = names.insert([UInt8](key.prefix(PieceKey.nameByteCount)))
                }
                await Task.yield()
            } while last != nil && names.count < Self.namesMax
            guard !names.isEmpty else { break }
            let unused = try await namesWithoutMark(of: names)
            let counts = try await write(each: unused, for: .removal) { transaction, name in
                try transaction.deletePieces(ofNoValue: name)
            }
            pieceCount += counts.reduce(0, +)
        } while last != nil
        return pieceCount
    }

    /// The names that are no row's. A damaged row counts as one with pieces.
    private func namesWithoutMark(of names: Set<[UInt8]>) async throws -> [[UInt8]] {
        var unused = names
        for table in environment.tables.declarations where table.id != Schema.pieces.id {
            var last: [UInt8]?
            repeat {
                last = try turn(of: table.id, after: last) { transaction, key, value in
                    guard transaction.storedRow(value, tableID: table.id, key: key).mayHavePieces else { return }
                    let pieceKey = PieceKey(ofRow: key, in: table.id, transaction.environment.authenticator)
                    unused.remove(pieceKey.name)
                }
                await Task.yield()
            } while last != nil
        }
        return Array(unused)
    }

    /// Calls `body` with the next rows of a table. Returns the key of the last one, or nil at the table's end.
    private func turn(
        of tableID: UInt8, after last: [UInt8]?,
        _ body: (borrowing ReadTransaction, UnsafeRawBufferPointer, MDB_val) -> Void
    ) throws -> [UInt8]? {
        try read { transaction -> [UInt8]? in
            let cursor = try Cursor(transaction, tableID: tableID)
            let everything = UnsafeRawBufferPointer(start: nil, count: 0)
            var entry = try cursor.first(of: everything, last.map { ScanStart.after($0) } ?? .first)
            var count = 0
            while let (key, value) = entry {
                body(transaction, key, value)
                count += 1
                if count == Self.rowsPerTurn { return [UInt8](key) }
                entry = try cursor.move(MDB_NEXT)
            }
            return nil
        }
    }

    private func distrustWrongSums() async throws -> Int {
        let wrong = try read { try $0.tenantsWithWrongSums() }
        _ = try await write(each: wrong, for: .removal) { transaction, tenantID in
            try transaction.distrustUsage(ofTenant: tenantID)
        }
        return wrong.count
    }
}

extension ReadTransaction {
    /// Whether no damaged row can have left anything.
    func isMended() throws(StoreError) -> Bool { try exists(Schema.meta, Migration.mendedKey) }

    /// Counts all rows.
    fileprivate func tenantsWithWrongSums() throws -> [Text] {
        guard try hasUsage() else { return [] }
        var counted = try countedUsage()
        var wrong: [Text] = []
        try scanKeys(of: Schema.tenantUsage) { key in
            let sum = counted.removeValue(forKey: key.tenant.bytes) ?? TenantUsage()
            if try usage(ofTenant: key.tenant) != sum { wrong.append(key.tenant) }
            return true
        }
        return wrong + counted.keys.map { Text(unchecked: $0) }
    }
}

extension WriteTransaction {
    /// Notes that the store needs no mending.
    func noteMended() throws(StoreError) { try put(Schema.meta, Migration.mendedKey, [1]) }

    /// Once per batch, before its commit: if a write met a row whose damage may leave something, the store needs to be
    /// mended.
    func noteDamage() throws(StoreError) {
        guard batch.hasFoundDamage else { return }
        reading.environment.mending.foundDamage()
        try delete(Schema.meta, Migration.mendedKey)
    }

    /// Returns the number of the deleted pieces.
    fileprivate func deletePieces(ofNoValue name: [UInt8]) throws(StoreError) -> Int {
        guard reading.environment.mending.mayDelete(name) else { return 0 }
        let before = try reading.count(tableID: Schema.pieces.id)
        try deletePieces(from: name)
        let after = try reading.count(tableID: Schema.pieces.id)
        if after < before { batch.countChange() }
        return before - after
    }

    /// Makes a wrong sum unknown, so that the tenant's rows are counted anew.
    fileprivate func distrustUsage(ofTenant tenantID: Text) throws(StoreError) {
        var usage = try reading.usage(ofTenant: tenantID)
        if !usage.isUnknown {
            usage.add(.unknown)
            try setUsage(usage, ofTenant: tenantID)
        }
        reading.environment.noteUnknownUsage(ofTenant: tenantID)
    }
}
