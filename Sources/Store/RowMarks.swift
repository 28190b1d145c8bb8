import Base
import Synchronization

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
        fileprivate let index: Int
    }

    /// They take 128 KiB.
    private static let placeCount = 1 << 14

    // Proof: set once, freed by deinit alone, and what it points to is atomic.
    nonisolated(unsafe) private let changedAt: UnsafeMutablePointer<Atomic<UInt64>>

    /// - Parameter tables: Their news must be `.marked`.
    public init(_ name: StaticString, of tables: [TableDeclaration], in store: Store) {
        // Proof: the tables are constants of the code, and marks are made at each start.
        precondition(tables.allSatisfy { $0.news == .marked }, "\(name): the tables do not mark their rows")
        changedAt = .allocate(capacity: Self.placeCount)
        for index in 0..<Self.placeCount { (changedAt + index).initialize(to: Atomic(0)) }
        store.follow(tables, as: name) { [weak self] in self?.move($0) }
    }

    deinit {
        changedAt.deinitialize(count: Self.placeCount)
        changedAt.deallocate()
    }

    public func place<Key: StoreKey, Record>(of table: Table<Key, Record>, _ key: Key) -> Place {
        let row = try? withBytes(of: key) { bytes throws(StoreError) in MarkedRow(tableID: table.id, key: bytes) }
        // A key that is too long has no row.
        return Place(index: index(of: row ?? MarkedRow(tableID: table.id, hash: 0)))
    }

    /// False if one of the rows was changed after the value was read. Always false in a write, which may have changed
    /// the rows itself.
    public func isCurrent<Value>(
        _ dated: Dated<Value>, _ places: (Place, Place), in transaction: borrowing ReadTransaction
    ) -> Bool {
        !transaction.isWriting && isUnchanged(places.0, since: dated.asOf) && isUnchanged(places.1, since: dated.asOf)
    }

    private func isUnchanged(_ place: Place, since snapshot: Snapshot) -> Bool {
        changedAt[place.index].load(ordering: .acquiring) <= snapshot.transactionID
    }

    private func move(_ announcement: Announcement) {
        for row in announcement.rows {
            changedAt[index(of: row)].store(announcement.snapshot.transactionID, ordering: .releasing)
        }
    }

    private func index(of row: MarkedRow) -> Int { Int(truncatingIfNeeded: row.hash) & (Self.placeCount - 1) }
}
