public import Base

/// time (µs since 1970, 8 bytes big-endian) ‖ table id ‖ the record's key: rows lie in the order they fall due.
struct ExpiryKey: StoreKey {
    var time: UInt64
    var tableID: UInt8
    var key: [UInt8]

    func write(into writer: inout KeyWriter) {
        writer.append(bigEndian: time)
        writer.append(tableID)
        writer.append(contentsOf: key)
    }
}

/// A record whose time has come.
public struct ExpiredRecord: Sendable, Equatable {
    public let time: Timestamp
    public let tableID: UInt8
    public let key: [UInt8]
}

extension WriteTransaction {
    /// Has `sweep` look at the record under `key` once `time` has passed. The key may take 502 bytes at most.
    public func scheduleExpiry<Key: StoreKey, Record>(
        at time: Timestamp, _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) {
        try put(Schema.expiry, try expiryKey(time, table, key), [])
    }

    /// Takes a scheduled expiry back; false if there was none at this very time.
    @discardableResult
    public func cancelExpiry<Key: StoreKey, Record>(
        at time: Timestamp, _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> Bool {
        try delete(Schema.expiry, try expiryKey(time, table, key))
    }

    /// Takes up to `limit` rows that are due at `now` out of the schedule, the oldest first.
    ///
    /// The caller deletes each record, or schedules it again if its life was extended in the meantime.
    public func takeExpired(now: Timestamp, limit: Int) throws -> [ExpiredRecord] {
        var expired: [ExpiredRecord] = []
        let end = UInt64(max(0, now.microseconds))
        try scan(Schema.expiry, limit: limit) { key, _ in
            guard key.count > 9 else { throw reading.corrupt(Schema.expiry.id) }
            let time = UInt64(bigEndian: key.loadUnaligned(as: UInt64.self))
            guard time <= end else { return false }
            expired.append(
                ExpiredRecord(
                    time: Timestamp(microseconds: Int64(clamping: time)), tableID: key[8], key: [UInt8](key[9...])))
            return true
        }
        for row in expired {
            let key = ExpiryKey(time: UInt64(row.time.microseconds), tableID: row.tableID, key: row.key)
            try delete(Schema.expiry, key)
        }
        return expired
    }

    private func expiryKey<Key: StoreKey, Record>(
        _ time: Timestamp, _ table: Table<Key, Record>, _ key: Key
    ) throws(StoreError) -> ExpiryKey {
        let bytes = try withBytes(of: key) { bytes throws(StoreError) in [UInt8](bytes) }
        // Times before 1970 are simply due: an unsigned key would sort them last.
        return ExpiryKey(time: UInt64(max(0, time.microseconds)), tableID: table.id, key: bytes)
    }
}

extension Store {
    /// Lets `handler` deal with up to `limit` records that are due, in one write; returns how many there were.
    ///
    /// As many as `limit` means that more may be due: sweep again, with other writes in between. A handler that throws
    /// undoes the whole slice. In a full store the slice is a smaller one.
    public func sweep(
        now: Timestamp, limit: Int,
        _ handler: @escaping @Sendable (borrowing WriteTransaction, ExpiredRecord) throws -> Void
    ) async throws -> Int {
        do {
            return try await write(for: .removal) { transaction in
                let expired = try transaction.takeExpired(now: now, limit: limit)
                for record in expired { try handler(transaction, record) }
                return expired.count
            }
        } catch StoreError.full where limit >= 16 {
            return try await sweep(now: now, limit: limit / 8, handler)
        }
    }
}
