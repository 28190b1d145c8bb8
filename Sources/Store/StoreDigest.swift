public import Base
import Crypto

/// A digest of each table at one moment: stores with the same rows have the same digests.
///
/// The rows that each store has for itself alone (`meta`, `pieces`) are left out.
public struct StoreDigest: Sendable {
    public struct Table: Sendable, Equatable {
        public let name: Text
        public let rowCount: Int
        /// SHA-256 over the rows in the order of their keys: lengths of key and record (8 bytes each), key, record.
        public let hash: [UInt8]
    }

    /// Nil for a store that is in no cluster.
    public let place: JournalPlace?
    public let tables: [Table]
}

extension Store {
    /// Reads the whole store, on the calling thread. Throws `.corrupt` at the first record that is not what was put,
    /// and `CancellationError` when `isWanted`, which is asked now and then, says no.
    public func digest(while isWanted: () -> Bool = { true }) throws -> StoreDigest {
        try read { transaction in
            var digests: [StoreDigest.Table] = []
            let own = [Schema.meta.id, Schema.pieces.id]
            for table in environment.tables.declarations where !own.contains(table.id) {
                digests.append(try transaction.digest(of: table, while: isWanted))
            }
            digests.sort { $0.name.description < $1.name.description }
            return StoreDigest(place: try transaction.journalPlace(), tables: digests)
        }
    }
}

extension ReadTransaction {
    fileprivate func digest(
        of table: TableDeclaration, while isWanted: () -> Bool
    ) throws -> StoreDigest.Table {
        var digest = RunningDigest()
        var rowCount = 0
        let everything = UnsafeRawBufferPointer(start: nil, count: 0)
        try scan(tableID: table.id, prefix: everything, from: .first, reversed: false, limit: .max) { key, record in
            if rowCount % 1_024 == 0, !isWanted() { throw CancellationError() }
            var lengths = [UInt8]()
            lengths.append(bigEndian: UInt64(key.count))
            lengths.append(bigEndian: UInt64(record.count))
            digest.update(lengths)
            digest.update(key)
            digest.update(record)
            rowCount += 1
            return true
        }
        return StoreDigest.Table(name: Text(table.name.description), rowCount: rowCount, hash: digest.finish())
    }
}
