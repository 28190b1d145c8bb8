public import Base
internal import CLMDB
import Glibc
public import Messages

/// The place where a scan begins, in its own direction. If the place is a key before all keys of the prefix, the scan
/// has all of them; if it is after them, the scan has none.
public struct ScanStart: Sendable {
    fileprivate enum Place { case first, at, after, behindPrefix }

    fileprivate let place: Place
    fileprivate let key: [UInt8]

    /// At the first key of the prefix.
    public static let first = ScanStart(place: .first, key: [])

    /// At the key, or at the next one if the key does not exist.
    public static func at(_ key: some StoreKey) -> ScanStart { ScanStart(place: .at, key: key.bytes) }

    /// After the key, which is the last one of the previous page.
    public static func after(_ key: some StoreKey) -> ScanStart { ScanStart(place: .after, key: key.bytes) }

    /// After all keys that begin with `prefix`.
    public static func behind(_ prefix: some KeyPrefix) -> ScanStart {
        ScanStart(place: .behindPrefix, key: prefix.bytes)
    }
}

/// A row that a scan reached. It is valid only during the call of the scan's body.
public struct Row<Key: StoreKey, Record: Sendable> {
    /// The record's bytes in the map.
    public let value: UnsafeRawBufferPointer
    @usableFromInline let keyBytes: UnsafeRawBufferPointer
    private let tableID: UInt8
    // Unowned: the reader or the writer that made the scan's transaction holds the environment for longer.
    private unowned(unsafe) let environment: Environment

    @usableFromInline
    init(
        _ table: Table<Key, Record>, keyBytes: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer,
        in transaction: borrowing ReadTransaction
    ) {
        self.value = value
        self.keyBytes = keyBytes
        self.tableID = table.id
        self.environment = transaction.environment
    }

    /// Throws `.corrupt` if the bytes are not such a key.
    @inlinable
    public var key: Key {
        get throws(StoreError) {
            guard let key = Key(stored: keyBytes) else { throw corrupt }
            return key
        }
    }

    @usableFromInline var corrupt: StoreError { environment.tables.corrupt(tableID) }
    @usableFromInline var messageLimits: MessageLimits { .ofStoredRecords }
}

extension Row where Record: Message {
    /// Throws `.corrupt` if the bytes are not such a record.
    @inlinable
    public var record: Record {
        get throws(StoreError) {
            do throws(DecodeError) {
                return try Record(decoding: value, limits: messageLimits)
            } catch {
                throw corrupt
            }
        }
    }
}

extension ReadTransaction {
    /// Calls `body` with each row under `prefix` in the order of the keys until it returns false or `limit` was
    /// reached.
    ///
    /// `body` may not change the store: collect, then change.
    @inlinable
    public func scan<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, prefix: some KeyPrefix = EmptyPrefix(), from start: ScanStart = .first,
        reversed: Bool = false, limit: Int = .max, _ body: (Row<Key, Record>) throws -> Bool
    ) throws {
        var failure: (any Error)?
        try withBytes(of: prefix) { prefix throws(StoreError) in
            do {
                try scan(tableID: table.id, prefix: prefix, from: start, reversed: reversed, limit: limit) {
                    key, value in
                    try body(Row(table, keyBytes: key, value: value, in: self))
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    /// The next keys of a table, up to `limit`, without a look at their records: for an upgrade, which must start even
    /// if a record is damaged.
    public func keys<Key: StoreKey, Record>(
        of table: Table<Key, Record>, after last: Key?, limit: Int
    ) throws(StoreError) -> [Key] {
        let cursor = try Cursor(self, tableID: table.id)
        let start = last.map { ScanStart.after($0) } ?? .first
        var entry = try cursor.first(of: UnsafeRawBufferPointer(start: nil, count: 0), start)
        var keys: [Key] = []
        while let (bytes, _) = entry, keys.count < limit {
            if let key = Key(stored: bytes) { keys.append(key) }
            entry = try cursor.move(MDB_NEXT)
        }
        return keys
    }

    /// Calls `body` with the keys under `prefix` in their order until it returns false, without a look at the records:
    /// for work that one damaged row must not end.
    ///
    /// A row whose key is damaged may be left out, or come with a key that nobody put there.
    public func scanKeys<Key: StoreKey, Record>(
        of table: Table<Key, Record>, prefix: some KeyPrefix = EmptyPrefix(), from start: ScanStart = .first,
        reversed: Bool = false, _ body: (Key) throws -> Bool
    ) throws {
        try prefix.bytes.withUnsafeBytes { prefix throws -> Void in
            let cursor = try Cursor(self, tableID: table.id)
            beginBorrow()
            defer { endBorrow() }
            var entry = try reversed ? cursor.last(of: prefix, start) : cursor.first(of: prefix, start)
            while let (bytes, _) = entry, bytes.starts(with: prefix) {
                if let key = Key(stored: bytes), try !body(key) { return }
                entry = try cursor.move(reversed ? MDB_PREV : MDB_NEXT)
            }
        }
    }

    /// The bytes of the first keys under `prefix`, at most `limit`, those of damaged rows too; and whether one of these
    /// rows is damaged.
    func firstKeys(tableID: UInt8, prefix: [UInt8], limit: Int) throws -> (keys: [[UInt8]], areDamaged: Bool) {
        try prefix.withUnsafeBytes { prefix throws -> (keys: [[UInt8]], areDamaged: Bool) in
            let cursor = try Cursor(self, tableID: tableID)
            var keys: [[UInt8]] = []
            var areDamaged = false
            var entry = try cursor.first(of: prefix, .first)
            while let (key, value) = entry, keys.count < limit, key.starts(with: prefix) {
                keys.append([UInt8](key))
                if !isWhole(value, tableID: tableID, key: key) { areDamaged = true }
                entry = try cursor.move(MDB_NEXT)
            }
            return (keys, areDamaged)
        }
    }

    /// Calls `body` with the keys of the rows that are not damaged, in their order, until it returns false. Returns
    /// whether a damaged row was passed over.
    func scanSoundKeys<Key: StoreKey, Record>(
        of table: Table<Key, Record>, _ body: (Key) throws -> Bool
    ) throws -> Bool {
        let cursor = try Cursor(self, tableID: table.id)
        beginBorrow()
        defer { endBorrow() }
        var areDamaged = false
        var entry = try cursor.move(MDB_FIRST)
        while let (bytes, value) = entry {
            if isWhole(value, tableID: table.id, key: bytes), let key = Key(stored: bytes) {
                guard try body(key) else { break }
            } else {
                areDamaged = true
            }
            entry = try cursor.move(MDB_NEXT)
        }
        return areDamaged
    }

    /// Whether the table has no rows. It looks for one: `count` believes a number of LMDB's that has no MAC.
    public func isEmpty<Key: StoreKey, Record>(_ table: Table<Key, Record>) throws(StoreError) -> Bool {
        try isEmpty(tableID: table.id)
    }

    func isEmpty(tableID: UInt8) throws(StoreError) -> Bool {
        let cursor = try Cursor(self, tableID: tableID)
        return try cursor.move(MDB_FIRST) == nil
    }

    private func isWhole(_ value: MDB_val, tableID: UInt8, key: UnsafeRawBufferPointer) -> Bool {
        guard let payload = try? verified(value, tableID: tableID, key: key) else { return false }
        endUse(of: payload)
        return true
    }

    @usableFromInline
    func scan(
        tableID: UInt8, prefix: UnsafeRawBufferPointer, from start: ScanStart, reversed: Bool, limit: Int,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        let cursor = try Cursor(self, tableID: tableID)
        beginBorrow()
        defer { endBorrow() }
        var entry = try reversed ? cursor.last(of: prefix, start) : cursor.first(of: prefix, start)
        var remaining = limit
        while let (key, value) = entry, remaining > 0, key.starts(with: prefix) {
            let payload = try verified(value, tableID: tableID, key: key)
            // If the body throws, the transaction's end frees a long value.
            let isWanted = try body(key, payload)
            endUse(of: payload)
            guard isWanted else { return }
            remaining -= 1
            entry = try cursor.move(reversed ? MDB_PREV : MDB_NEXT)
        }
    }
}

/// An open cursor; ends before its transaction does.
struct Cursor: ~Copyable {
    typealias Entry = (key: UnsafeRawBufferPointer, value: MDB_val)

    private let raw: OpaquePointer

    init(_ transaction: borrowing ReadTransaction, tableID: UInt8) throws(StoreError) {
        var opened: OpaquePointer?
        let handle = transaction.environment.tables.handle(of: tableID)
        try StoreError.check(mdb_cursor_open(transaction.raw, handle, &opened), "mdb_cursor_open")
        guard let opened else { preconditionFailure("mdb_cursor_open made nothing") }
        self.raw = opened
    }

    deinit { mdb_cursor_close(raw) }

    func move(_ operation: MDB_cursor_op, to target: UnsafeRawBufferPointer? = nil) throws(StoreError) -> Entry? {
        var key = target.map { MDB_val(borrowing: $0) } ?? MDB_val()
        var value = MDB_val()
        let code = mdb_cursor_get(raw, &key, &value, operation)
        if code == MDB_NOTFOUND { return nil }
        try StoreError.check(code, "mdb_cursor_get")
        return (UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size), value)
    }

    /// Deletes the row at which the cursor is, in a write. Returns LMDB's code.
    func delete() -> Int32 { mdb_cursor_del(raw, 0) }

    /// The first key ≥ `target`. LMDB refuses an empty target.
    private func seek(_ target: UnsafeRawBufferPointer) throws(StoreError) -> Entry? {
        target.isEmpty ? try move(MDB_FIRST) : try move(MDB_SET_RANGE, to: target)
    }

    func first(of prefix: UnsafeRawBufferPointer, _ start: ScanStart) throws(StoreError) -> Entry? {
        let resume = start.place == .behindPrefix ? start.key.endOfPrefix : start.key
        guard let resume else { return nil }
        guard start.place != .first, !resume.precedes(prefix) else { return try seek(prefix) }
        let found = try resume.span.withUnsafeBytes { bytes throws(StoreError) in try seek(bytes) }
        guard start.place == .after, let found, found.key.elementsEqual(resume) else { return found }
        return try move(MDB_NEXT)
    }

    func last(of prefix: UnsafeRawBufferPointer, _ start: ScanStart) throws(StoreError) -> Entry? {
        // Every key with a prefix is at the prefix or after it.
        let resume = start.key
        guard start.place != .first, resume.starts(with: prefix) || resume.precedes(prefix) else {
            return try lastBefore(endOf: prefix)
        }
        if resume.precedes(prefix) { return nil }
        let found = try resume.span.withUnsafeBytes { bytes throws(StoreError) in try seek(bytes) }
        guard let found else { return try move(MDB_LAST) }
        if found.key.elementsEqual(resume), start.place == .at { return found }
        return try move(MDB_PREV)
    }

    private func lastBefore(endOf prefix: UnsafeRawBufferPointer) throws(StoreError) -> Entry? {
        guard let end = [UInt8](prefix).endOfPrefix else { return try move(MDB_LAST) }
        let found = try end.span.withUnsafeBytes { bytes throws(StoreError) in try seek(bytes) }
        return found == nil ? try move(MDB_LAST) : try move(MDB_PREV)
    }
}

extension [UInt8] {
    /// The smallest byte string above all strings that begin with these bytes; nil if there is none.
    fileprivate var endOfPrefix: [UInt8]? {
        guard let index = lastIndex(where: { $0 != 0xFF }) else { return nil }
        var end = Array(self[...index])
        end[index] += 1
        return end
    }

    fileprivate func precedes(_ other: UnsafeRawBufferPointer) -> Bool { lexicographicallyPrecedes(other) }
}

extension UnsafeRawBufferPointer {
    /// memcmp instead of the standard library's element by element.
    fileprivate func starts(with prefix: UnsafeRawBufferPointer) -> Bool {
        guard count >= prefix.count, let mine = baseAddress, let other = prefix.baseAddress else {
            return prefix.isEmpty
        }
        return memcmp(mine, other, prefix.count) == 0
    }
}
