public import Base
public import Messages

/// A record that expires: the code that puts it also schedules its end, and the sweep deals with the record then.
///
///     extension StoredUsedTokenID: ExpiringRecord {
///         public static func expire(
///             _ key: HashKey, of table: Table<HashKey, Self>, in transaction: borrowing WriteTransaction,
///             now: Timestamp
///         ) throws {
///             try transaction.delete(table, key)
///         }
///     }
public protocol ExpiringRecord: Message {
    associatedtype Key: StoreKey

    /// Called in the sweep's write when the time has come, even if the record is already gone. Deletes the record and
    /// its dependent rows, or schedules its end again if its life was extended.
    static func expire(
        _ key: Key, of table: Table<Key, Self>, in transaction: borrowing WriteTransaction, now: Timestamp) throws
}

extension Table where Record: ExpiringRecord, Record.Key == Key {
    public var declaration: TableDeclaration {
        TableDeclaration(self) { bytes, transaction, now in
            guard let key = Key(stored: bytes) else { throw transaction.reading.corrupt(id) }
            try Record.expire(key, of: self, in: transaction, now: now)
        }
    }
}

extension WriteTransaction {
    /// Schedules the end of the record under `key`: the sweep deals with it after `time`. A key has at most 502 bytes.
    public func scheduleExpiry<Record: ExpiringRecord>(
        at time: Timestamp, _ table: Table<Record.Key, Record>, _ key: Record.Key
    ) throws(StoreError) {
        try put(Schema.expiry, try expiryKey(time, table, key), [])
    }

    /// Cancels a scheduled expiry. Returns false if there was none at exactly this time.
    @discardableResult
    public func cancelExpiry<Record: ExpiringRecord>(
        at time: Timestamp, _ table: Table<Record.Key, Record>, _ key: Record.Key
    ) throws(StoreError) -> Bool {
        try delete(Schema.expiry, try expiryKey(time, table, key))
    }

    private func expiryKey<Key: StoreKey, Record>(
        _ time: Timestamp, _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> ExpiryKey {
        let bytes = try withBytes(of: key) { bytes throws(StoreError) in [UInt8](bytes) }
        return ExpiryKey(time: time, tableID: table.id, key: bytes)
    }

    /// Deals with up to `limit` records that are due at `now`, the oldest first, and with fewer if their time is over
    /// before (`SliceTime`): a record may be large. A row whose table this version does not know is dropped, and its
    /// record stays.
    public func expireRecords(now: Timestamp, limit: Int) throws -> WriteSlice {
        try expireDueRecords(now: now, limit: limit).slice
    }

    /// The same. Tells whether a damaged row was passed over, too.
    fileprivate func expireDueRecords(
        now: Timestamp, limit: Int
    ) throws -> (slice: WriteSlice, passedOver: Bool) {
        let time = beginSlice()
        let (due, passedOver) = try reading.dueExpiries(now: now, limit: limit)
        var count = 0
        for row in due {
            try delete(Schema.expiry, row)
            count += 1
            if let expire = reading.environment.tables[row.tableID]?.expire {
                try row.key.withUnsafeBytes { try expire($0, self, now) }
            }
            if time.isOver { break }
        }
        return (WriteSlice(count: count, isMore: count < due.count || count == limit), passedOver)
    }

    /// Puts the first due record off by a day, because it cannot be dealt with now. If the expiry row itself is
    /// damaged, the row is dropped and the record stays: a damaged row may name a record whose time has not come. Not
    /// on a node of a cluster, because row and record may be whole on the other nodes (`DamagedExpiries`).
    fileprivate func putOffFirstExpiry(now: Timestamp) throws -> WriteSlice {
        let one = WriteSlice(count: 1, isMore: true)
        if try dropFirstExpiryIfDamaged() { return one }
        guard let row = try reading.dueExpiries(now: now, limit: 1).due.first else {
            return WriteSlice(count: 0, isMore: false)
        }
        try delete(Schema.expiry, row)
        try put(Schema.expiry, ExpiryKey(time: now + .days(1), tableID: row.tableID, key: row.key), [])
        return one
    }

    /// The first due row of the schedule that is not passed over. For a node of a cluster.
    fileprivate func firstDueExpiry(now: Timestamp) throws -> ExpiryKey? {
        try reading.dueExpiries(now: now, limit: 1).due.first
    }

    private func dropFirstExpiryIfDamaged() throws -> Bool {
        let (keys, areDamaged) = try reading.firstKeys(tableID: Schema.expiry.id, prefix: [], limit: 1)
        guard areDamaged || keys.contains(where: { key in key.withUnsafeBytes { ExpiryKey(stored: $0) } == nil })
        else { return false }
        try delete(tableID: Schema.expiry.id, keys)
        return true
    }
}

extension ReadTransaction {
    /// The rows that are due at `now`, the oldest first. A damaged row throws. A node of a cluster passes over damaged
    /// rows, and the rows of records that are damaged here.
    fileprivate func dueExpiries(now: Timestamp, limit: Int) throws -> (due: [ExpiryKey], passedOver: Bool) {
        let end = UInt64(max(0, now.microseconds))
        var due: [ExpiryKey] = []
        if environment.isInCluster {
            let damaged = environment.damagedExpiries.rows(now: now)
            let passedOver = try scanSoundKeys(of: Schema.expiry) { key in
                guard due.count < limit, key.time <= end else { return false }
                if !damaged.contains(key) { due.append(key) }
                return true
            }
            return (due, passedOver)
        }
        try scan(Schema.expiry, limit: limit) { row in
            let key = try row.key
            if key.time <= end { due.append(key) }
            return key.time <= end
        }
        return (due, false)
    }
}

extension Store {
    /// Deals with up to `limit` records that are due, in one write, which ends after `Limits.writeBatchTimeMax`.
    ///
    /// While it returns that there is more, sweep again, with other writes in between. If a record throws, the whole
    /// slice is undone. In a full store, the slice is smaller.
    ///
    /// A damaged record stays, and is told to `onDamage` once a day. A damaged row that says when a record expires is
    /// dropped, and told once. Neither keeps the others. A node of a cluster leaves such a row, because it may be whole
    /// on the other nodes, and tells `onPassedRow` with each slice. It also leaves the row of a damaged record. The
    /// record goes when another node sweeps.
    public func sweep(
        now: Timestamp, limit: Int, onDamage: @Sendable (StoreError) -> Void = { _ in },
        onPassedRow: @Sendable (_ table: String) -> Void = { _ in }
    ) async throws -> WriteSlice {
        do {
            let swept = try await write(for: .removal) { try $0.expireDueRecords(now: now, limit: limit) }
            if swept.passedOver { onPassedRow(Schema.expiry.name.description) }
            return swept.slice
        } catch StoreError.full where limit >= 16 {
            return try await sweep(now: now, limit: limit / 8, onDamage: onDamage, onPassedRow: onPassedRow)
        } catch StoreError.corrupt where limit > 1 {
            var (count, isMore) = (0, true)
            while count < limit, isMore {
                let slice = try await sweep(now: now, limit: 1, onDamage: onDamage, onPassedRow: onPassedRow)
                count += slice.count
                isMore = slice.isMore
            }
            return WriteSlice(count: count, isMore: isMore)
        } catch StoreError.corrupt(let table) {
            onDamage(.corrupt(table: table))
            if isInCluster {
                guard let row = try await write(for: .removal, { try $0.firstDueExpiry(now: now) }) else {
                    return WriteSlice(count: 0, isMore: false)
                }
                environment.damagedExpiries.passOver(row, until: now + .days(1))
                return WriteSlice(count: 1, isMore: true)
            }
            return try await write(for: .removal) { try $0.putOffFirstExpiry(now: now) }
        }
    }
}
