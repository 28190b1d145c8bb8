internal import CLMDB

/// A moment of the store, as a transaction sees it: the later of two snapshots holds every commit of the earlier one.
public struct Snapshot: Comparable, Sendable {
    /// LMDB's number of the last transaction in the snapshot.
    let transactionID: UInt64

    /// The snapshot that the transaction sees. Others see that of the writer's transaction after its commit.
    // Proof: LMDB's number is a size_t.
    init(of transaction: OpaquePointer) { transactionID = UInt64(mdb_txn_id(transaction)) }

    init(transactionID: UInt64) { self.transactionID = transactionID }

    public static func < (left: Snapshot, right: Snapshot) -> Bool { left.transactionID < right.transactionID }
}

/// A value that was made from rows, and the snapshot in which they were read. Only a read transaction makes a dated
/// value, so that the snapshot is never a guess.
public struct Dated<Value> {
    public let value: Value
    public let asOf: Snapshot

    init(_ value: Value, asOf: Snapshot) {
        self.value = value
        self.asOf = asOf
    }
}

extension Dated: Sendable where Value: Sendable {}

extension Dated {
    /// The result of `body`, with the same date; nil if `body` returns nil.
    public func map<Other>(_ body: (Value) throws -> Other?) rethrows -> Dated<Other>? {
        try body(value).map { Dated<Other>($0, asOf: asOf) }
    }
}
