internal import CLMDB
import Glibc

/// Where a scan begins, in its own direction. A key before the prefix's keys means all of them, one behind them none.
public enum ScanStart: Sendable, Equatable {
    case first
    case at([UInt8])
    /// Behind the last key of the page before.
    case after([UInt8])
}

extension ReadTransaction {
    /// Calls `body` with each key and record under `prefix` in key order until it returns false or `limit` was reached.
    ///
    /// `body` may not change the store: collect, then change. Both pointers are valid during the call only.
    @inlinable
    public func scan<Key: StoreKey, Record>(
        _ table: Table<Key, Record>, prefix: some StoreKey = EmptyPrefix(), from start: ScanStart = .first,
        reversed: Bool = false, limit: Int = .max,
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
    ) throws {
        var failure: (any Error)?
        try withBytes(of: prefix) { prefix throws(StoreError) in
            do {
                try scan(tableID: table.id, prefix: prefix, from: start, reversed: reversed, limit: limit, body)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
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
            guard try body(key, payload) else { return }
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
        let handle = transaction.environment.handle(of: tableID)
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

    /// The first key ≥ `target`; LMDB refuses an empty one.
    private func seek(_ target: UnsafeRawBufferPointer) throws(StoreError) -> Entry? {
        target.isEmpty ? try move(MDB_FIRST) : try move(MDB_SET_RANGE, to: target)
    }

    func first(of prefix: UnsafeRawBufferPointer, _ start: ScanStart) throws(StoreError) -> Entry? {
        guard let resume = start.key, !resume.precedes(prefix) else { return try seek(prefix) }
        let found = try resume.span.withUnsafeBytes { bytes throws(StoreError) in try seek(bytes) }
        guard start.isExclusive, let found, found.key.elementsEqual(resume) else { return found }
        return try move(MDB_NEXT)
    }

    func last(of prefix: UnsafeRawBufferPointer, _ start: ScanStart) throws(StoreError) -> Entry? {
        guard let resume = start.key, resume.starts(with: prefix) || resume.precedes(prefix) else {
            return try lastBefore(endOf: prefix)
        }
        if resume.precedes(prefix) { return nil }
        let found = try resume.span.withUnsafeBytes { bytes throws(StoreError) in try seek(bytes) }
        guard let found else { return try move(MDB_LAST) }
        if found.key.elementsEqual(resume), !start.isExclusive { return found }
        return try move(MDB_PREV)
    }

    /// The last key below the smallest byte string that is above every key with `prefix`.
    private func lastBefore(endOf prefix: UnsafeRawBufferPointer) throws(StoreError) -> Entry? {
        guard let index = prefix.lastIndex(where: { $0 != 0xFF }) else { return try move(MDB_LAST) }
        var end = [UInt8](prefix[...index])
        end[index] += 1
        let found = try end.span.withUnsafeBytes { bytes throws(StoreError) in try seek(bytes) }
        return found == nil ? try move(MDB_LAST) : try move(MDB_PREV)
    }
}

extension ScanStart {
    fileprivate var key: [UInt8]? {
        switch self {
        case .first: nil
        case .at(let key), .after(let key): key
        }
    }

    fileprivate var isExclusive: Bool {
        if case .after = self { true } else { false }
    }
}

extension [UInt8] {
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
