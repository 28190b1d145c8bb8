public import Base
internal import CLMDB
public import Messages

/// A snapshot of the whole store: everything committed when the read began and, in a write, also the earlier changes.
///
/// Exists only as an argument of `read` and `write` closures. Values are verified on every read; a value that fails
/// throws `.corrupt`, never nil. Pointers handed to closures are into the map, or to a long value that was put together
/// from its pieces: valid during the closure only.
public struct ReadTransaction: ~Copyable {
    let raw: OpaquePointer
    // Unowned: the reader or the writer that made this transaction holds the environment for longer than the body.
    unowned(unsafe) let environment: Environment
    // Unowned for the same reason.
    unowned(unsafe) let longValues: LongValues
    /// In a write: how many closures hold pointers into pages that a change could move.
    private let borrowCount: UnsafeMutablePointer<Int>?

    init(
        raw: OpaquePointer, environment: Environment, longValues: LongValues,
        borrowCount: UnsafeMutablePointer<Int>? = nil
    ) {
        self.raw = raw
        self.environment = environment
        self.longValues = longValues
        self.borrowCount = borrowCount
    }

    /// Nil if there is no record under `key`.
    @inlinable
    public func get<Key: StoreKey, Record: Message>(
        _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> Record? {
        guard let payload = try payload(table, key) else { return nil }
        defer { endUse(of: payload) }
        return try record(table, payload)
    }

    /// The record in bytes that `borrowedValue` gave.
    @inlinable
    public func record<Key: StoreKey, Record: Message>(
        _ table: Table<Key, Record>, _ borrowed: UnsafeRawBufferPointer
    ) throws(StoreError) -> Record {
        do throws(DecodeError) {
            return try Record(decoding: borrowed, limits: messageLimits)
        } catch {
            throw corrupt(table.id)
        }
    }

    /// A copy of the bytes under `key`, or nil.
    @inlinable
    public func get<Key: StoreKey>(_ table: Table<Key, [UInt8]>, _ key: Key) throws(StoreError) -> [UInt8]? {
        guard let payload = try payload(table, key) else { return nil }
        defer { endUse(of: payload) }
        return [UInt8](payload)
    }

    /// Calls `body` with the record's bytes in the map. If there is no record, returns nil without a call.
    @inlinable
    public func withValue<Key: StoreKey, Record, Result>(
        _ table: Table<Key, Record>, _ key: Key, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result? {
        guard let payload = try payload(table, key) else { return nil }
        beginBorrow()
        defer {
            endBorrow()
            endUse(of: payload)
        }
        return try body(payload)
    }

    /// The record's bytes in the map, not copied unless the value is long: for answers that send them on unchanged.
    ///
    /// Valid until this transaction ends, in a write until the next change; prefer `withValue`, which cannot be
    /// misused.
    @inlinable
    public func borrowedValue<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> UnsafeRawBufferPointer? {
        try payload(table, key)
    }

    @inlinable
    public func exists<Key: StoreKey, Record>(_ table: Table<Key, Record>, _ key: Key) throws(StoreError) -> Bool {
        guard let payload = try payload(table, key) else { return false }
        endUse(of: payload)
        return true
    }

    /// The number of all records of the table; O(1).
    @inlinable
    public func count<Key: StoreKey, Record>(_ table: Table<Key, Record>) throws(StoreError) -> Int {
        try count(tableID: table.id)
    }

    /// Valid until the next change in a write, until the end of the transaction in a read.
    @inlinable
    func payload<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> UnsafeRawBufferPointer? {
        try withBytes(of: key) { bytes throws(StoreError) in try payload(tableID: table.id, key: bytes) }
    }

    @usableFromInline
    func payload(tableID: UInt8, key: UnsafeRawBufferPointer) throws(StoreError) -> UnsafeRawBufferPointer? {
        guard !key.isEmpty else { throw .keySize }
        var keyValue = MDB_val(borrowing: key)
        var value = MDB_val()
        let code = mdb_get(raw, environment.tables.handle(of: tableID), &keyValue, &value)
        if code == MDB_NOTFOUND { return nil }
        try StoreError.check(code, "mdb_get")
        postern_prefetch(value.mv_data, value.mv_size)
        return try verified(value, tableID: tableID, key: key)
    }

    func verified(
        _ value: MDB_val, tableID: UInt8, key: UnsafeRawBufferPointer
    ) throws(StoreError) -> UnsafeRawBufferPointer {
        let stored = UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)
        let payload = Unmanaged.passUnretained(environment)._withUnsafeGuaranteedRef {
            $0.payload(in: stored, table: tableID, key: key)
        }
        if let payload { return payload }
        return try longValue(stored, tableID: tableID, key: key)
    }

    /// Frees a long value that was put together for its reader. Does nothing to a value in the map.
    @usableFromInline
    @inline(__always)
    func endUse(of payload: UnsafeRawBufferPointer) {
        if !longValues.isEmpty { longValues.remove(payload) }
    }

    @usableFromInline
    func count(tableID: UInt8) throws(StoreError) -> Int {
        var status = MDB_stat()
        try StoreError.check(mdb_stat(raw, environment.tables.handle(of: tableID), &status), "mdb_stat")
        return status.ms_entries
    }

    /// Whether the transaction is the writer's, and sees what is not committed yet.
    var isWriting: Bool { borrowCount != nil }
    @usableFromInline var messageLimits: MessageLimits { .ofStoredRecords }
    @usableFromInline func corrupt(_ tableID: UInt8) -> StoreError { environment.tables.corrupt(tableID) }
    @usableFromInline func beginBorrow() { borrowCount?.pointee += 1 }
    @usableFromInline func endBorrow() { borrowCount?.pointee -= 1 }
}

extension Environment {
    /// The payload of a stored value; nil if the value is not what was put under this key. A function of the
    /// environment, because then no reference is counted for the authenticator. The environment is lent to it, because
    /// all loops share it (docs/decisions/0132).
    fileprivate func payload(
        in stored: UnsafeRawBufferPointer, table: UInt8, key: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        RecordSeal.open(stored, table: table, key: key, authenticator: authenticator)
    }
}

extension MDB_val {
    /// LMDB does not write through a key or value that is passed in.
    @inline(__always)
    init(borrowing bytes: UnsafeRawBufferPointer) {
        self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
}
