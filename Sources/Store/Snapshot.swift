internal import CLMDB

/// A moment of the store, as a transaction sees it: the later of two snapshots holds all that the earlier one holds.
public struct Snapshot: Comparable, Sendable {
    /// LMDB's number of the last transaction that is in it.
    let transactionID: UInt64

    /// What the transaction sees, and in the writer's case what others see once it is committed.
    // Proof: LMDB's number is a size_t.
    init(of transaction: OpaquePointer) { transactionID = UInt64(mdb_txn_id(transaction)) }

    init(transactionID: UInt64) { self.transactionID = transactionID }

    public static func < (left: Snapshot, right: Snapshot) -> Bool { left.transactionID < right.transactionID }
}

/// A value that was made of rows, and the snapshot that it was read in. Only a read transaction makes one, so that the
/// snapshot is never a guess.
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
    /// What follows from the value, of the same date; nil where nothing does.
    public func map<Other>(_ body: (Value) throws -> Other?) rethrows -> Dated<Other>? {
        try body(value).map { Dated<Other>($0, asOf: asOf) }
    }
}
