import Base

/// Tells whether values that were made from single rows are still valid: for copies of rows of large tables, kept
/// beside something else. As `TableMark`, but if one row changes, the values of other rows stay valid.
///
/// A row's mark is a place that it shares with a few other rows. If one of those changes, the value is read again,
/// which costs time only.
///
///     let marks = RowMarks("live tokens", of: [Tables.users.declaration], in: store)
///     let place = marks.place(of: Tables.users, key)
///     let status = try store.read { $0.dated(try status(of: key, in: $0)) }
///     …
///     if marks.isCurrent(status, place, in: transaction) { use(status.value) }
public final class RowMarks: Sendable {
    public struct Place: Sendable, Hashable {
        fileprivate let hash: Int
    }

    /// The marks take 128 KiB of memory.
    private let marks = ChangeMarks(count: 1 << 14)

    /// - Parameter tables: Their news must be `.marked`.
    public init(_ name: StaticString, of tables: [TableDeclaration], in store: Store) {
        // Proof: the tables are constants of the code, and marks are made at each start.
        precondition(tables.allSatisfy { $0.news == .marked }, "\(name): the tables do not mark their rows")
        store.follow(tables, as: name) { [weak self] in self?.move($0) }
    }

    public func place<Key: StoreKey, Record>(of table: Table<Key, Record>, _ key: Key) -> Place {
        let row = try? withBytes(of: key) { bytes throws(StoreError) in MarkedRow(tableID: table.id, key: bytes) }
        // A key that is too long has no row.
        return Place(hash: Self.hash(of: row ?? MarkedRow(tableID: table.id, hash: 0)))
    }

    /// False if one of the rows was changed after the value was read. Always false in a write, which may have changed
    /// the rows itself.
    public func isCurrent<Value>(
        _ dated: Dated<Value>, _ places: (Place, Place), in transaction: borrowing ReadTransaction
    ) -> Bool {
        !transaction.isWriting && marks.isUnchanged(places.0.hash, since: dated.asOf)
            && marks.isUnchanged(places.1.hash, since: dated.asOf)
    }

    private func move(_ announcement: Announcement) {
        for row in announcement.rows { marks.move(Self.hash(of: row), to: announcement.snapshot) }
    }

    private static func hash(of row: MarkedRow) -> Int { Int(truncatingIfNeeded: row.hash) }
}
