public import Base
public import Messages

/// The writer's transaction as one write's body sees it: everything committed, the batch's earlier writes, its own.
///
/// Check first, then change. A body that throws before its first change costs nothing; a body that throws after it
/// makes the batch run again without this body. In both cases it writes nothing.
public struct WriteTransaction: ~Copyable {
    /// The same transaction, for functions that only read.
    public let reading: ReadTransaction
    // Unowned: the writer holds it for as long as its thread runs.
    unowned(unsafe) let batch: WriteBatch

    init(raw: OpaquePointer, environment: Environment, batch: WriteBatch) {
        self.reading = ReadTransaction(
            raw: raw, environment: environment, longValues: batch.longValues,
            borrowCount: batch.borrowCount)
        self.batch = batch
    }

    /// Puts the record under `key`, replacing what is there.
    @inlinable
    public func put<Key: StoreKey, Record: Message>(
        _ table: Table<Key, Record>, _ key: Key, _ record: Record
    ) throws(StoreError) {
        try withBytes(of: key) { bytes throws(StoreError) in
            _ = try put(tableID: table.id, key: bytes, ifAbsent: false) { record.encode(into: &$0) }
        }
    }

    @inlinable
    public func put<Key: StoreKey>(
        _ table: Table<Key, [UInt8]>, _ key: Key, _ value: [UInt8]
    ) throws(StoreError) {
        try value.span.withUnsafeBytes { value throws(StoreError) in try put(table, key, bytes: value) }
    }

    /// Puts bytes as they are. In a table of messages, they must be an encoded message.
    @inlinable
    public func put<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, _ key: Key, bytes: UnsafeRawBufferPointer
    ) throws(StoreError) {
        try withBytes(of: key) { key throws(StoreError) in
            _ = try put(tableID: table.id, key: key, payload: bytes, ifAbsent: false)
        }
    }

    /// Puts the record. If there is one already, returns false and changes nothing. This is what makes an index unique.
    @inlinable
    public func put<Key: StoreKey, Record: Message>(
        ifAbsent table: Table<Key, Record>, _ key: Key, _ record: Record
    ) throws(StoreError) -> Bool {
        try withBytes(of: key) { bytes throws(StoreError) in
            try put(tableID: table.id, key: bytes, ifAbsent: true) { record.encode(into: &$0) }
        }
    }

    @inlinable
    public func put<Key: StoreKey>(
        ifAbsent table: Table<Key, [UInt8]>, _ key: Key, _ value: [UInt8]
    ) throws(StoreError) -> Bool {
        try withBytes(of: key) { key throws(StoreError) in
            try value.span.withUnsafeBytes { value throws(StoreError) in
                try put(tableID: table.id, key: key, payload: value, ifAbsent: true)
            }
        }
    }

    /// False if there was no record.
    @inlinable
    @discardableResult
    public func delete<Key: StoreKey, Record>(_ table: Table<Key, Record>, _ key: Key) throws(StoreError) -> Bool {
        try withBytes(of: key) { bytes throws(StoreError) in try delete(tableID: table.id, key: bytes) }
    }

    /// Deletes up to `limit` records under `prefix` and returns how many. Less than `limit` means that none are left.
    public func deleteAll<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, prefix: some KeyPrefix, limit: Int
    ) throws -> Int {
        try deleteAll(tableID: table.id, prefix: prefix.bytes, limit: limit)
    }

    /// Deletes up to `limit` rows of each table with `RowPurge.withTenant`, until `time` is over. Returns whether there
    /// may be more. Damaged rows are deleted, too; their tables' names are told to `onDamage`.
    public func deleteRows(
        ofTenant tenantID: Text, limit: Int, until time: SliceTime, onDamage: (String) -> Void = { _ in }
    ) throws -> Bool {
        var isMore = false
        for table in reading.environment.tables.declarations {
            guard case .withTenant = table.purge else { continue }
            let count = try deleteAll(
                tableID: table.id, evenDamagedOf: tenantID, limit: limit, name: table.name, onDamage: onDamage)
            if count == limit { isMore = true }
            // Only a table that had rows: each slice has to make some progress.
            if count > 0, time.isOver { return true }
        }
        return isMore
    }

    /// Deletes up to `limit` rows of a deleted tenant, also damaged ones, and returns how many.
    public func deleteAll<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, evenDamagedOf tenantID: Text, limit: Int, onDamage: (String) -> Void = { _ in }
    ) throws -> Int {
        try deleteAll(
            tableID: table.id, evenDamagedOf: tenantID, limit: limit, name: table.name, onDamage: onDamage)
    }

    private func deleteAll(
        tableID: UInt8, evenDamagedOf tenantID: Text, limit: Int, name: StaticString, onDamage: (String) -> Void
    ) throws -> Int {
        let prefix = TenantPrefix(tenantID).bytes
        let (keys, areDamaged) = try reading.firstKeys(tableID: tableID, prefix: prefix, limit: limit)
        if areDamaged { onDamage(name.description) }
        try delete(tableID: tableID, keys)
        return keys.count
    }

    private func deleteAll(tableID: UInt8, prefix: [UInt8], limit: Int) throws -> Int {
        var keys: [[UInt8]] = []
        try prefix.withUnsafeBytes { prefix in
            try reading.scan(tableID: tableID, prefix: prefix, from: .first, reversed: false, limit: limit) { key, _ in
                keys.append([UInt8](key))
                return true
            }
        }
        try delete(tableID: tableID, keys)
        return keys.count
    }

    func delete(tableID: UInt8, _ keys: [[UInt8]]) throws(StoreError) {
        for key in keys {
            try key.span.withUnsafeBytes { key throws(StoreError) in _ = try delete(tableID: tableID, key: key) }
        }
    }
}

// MARK: - Slices

extension WriteTransaction {
    /// Begins a slice, which may take `Limits.writeBatchTimeMax` from now on. Each run of a body begins its own.
    public func beginSlice() -> SliceTime { SliceTime(reading.environment.limits.writeBatchTimeMax) }
}

// MARK: - The end of a batch

extension WriteTransaction {
    /// Writes the rows that follow from all of a batch's writes together. Sequences and the heads of chains are
    /// assigned only here.
    func finishBatch() throws(StoreError) {
        try writeEvents()
        try writeUsage()
        try writeTimeMark()
        try noteDamage()
    }
}

// MARK: - Purpose

extension WriteTransaction {
    /// Notes that this write turned out to be for growth, so that it may not use the reserve of a full store: for
    /// example, a sign-in that makes an account.
    public func countsAsGrowth() { batch.isGrowth = true }
}

// MARK: - Announcing

extension WriteTransaction {
    /// After this write is committed, tells the followers of `topic` that something of it changed. Followers must read
    /// for themselves, because a write that fails may be announced all the same.
    ///
    /// Not for rows: their tables say what a change announces (`RowNews`).
    public func announce(_ topic: ChangeTopic) { batch.announceOwn(topic) }
}

// MARK: - Reading

extension WriteTransaction {
    @inlinable
    public func get<Key: StoreKey, Record: Message>(
        _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> Record? {
        try reading.get(table, key)
    }

    @inlinable
    public func get<Key: StoreKey>(_ table: Table<Key, [UInt8]>, _ key: Key) throws(StoreError) -> [UInt8]? {
        try reading.get(table, key)
    }

    @inlinable
    public func withValue<Key: StoreKey, Record, Result>(
        _ table: Table<Key, Record>, _ key: Key, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result? {
        try reading.withValue(table, key, body)
    }

    @inlinable
    public func exists<Key: StoreKey, Record>(_ table: Table<Key, Record>, _ key: Key) throws(StoreError) -> Bool {
        try reading.exists(table, key)
    }

    @inlinable
    public func scan<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, prefix: some KeyPrefix = EmptyPrefix(), from start: ScanStart = .first,
        reversed: Bool = false, limit: Int = .max, _ body: (Row<Key, Record>) throws -> Bool
    ) throws {
        try reading.scan(table, prefix: prefix, from: start, reversed: reversed, limit: limit, body)
    }
}

// MARK: - Bytes

extension WriteTransaction {
    @usableFromInline
    func put(
        tableID: UInt8, key: UnsafeRawBufferPointer, ifAbsent: Bool, encode: (inout ByteBuffer) -> Void
    ) throws(StoreError) -> Bool {
        let payload = batch.encoded(encode)
        return try put(tableID: tableID, key: key, payload: payload, ifAbsent: ifAbsent)
    }
}
