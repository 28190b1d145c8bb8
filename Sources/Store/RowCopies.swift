import Base
public import Messages
import Synchronization

/// Values that are made from a table's rows and kept in memory until a commit changes their row.
///
/// Nobody can put a value here or change one. Each value is made from a row as a transaction read it, and is dropped
/// when any commit changes the row. A change is answered only after that. A transaction that began before the change
/// may still get the value of its snapshot, but that value is not kept. Any thread.
///
///     let settings = RowCopies("settings", of: Tables.tenants, in: store, countMax: 1_000) { _, record in
///         Settings(record)
///     }
///     let found = try store.read { try settings.value(TenantPrefix(tenantID), in: $0) }
public final class RowCopies<Key: StoreKey & Hashable, Record: Message, Value: Sendable>: Sendable {
    private struct Kept {
        var values: RecentlyUsed<Key, Value>
        /// The newest snapshot in which a row was changed.
        var changedAt = Snapshot(transactionID: 0)
    }

    private let table: Table<Key, Record>
    private let make: @Sendable (Key, Record) -> Value
    private let kept: Mutex<Kept>
    /// Whether values that were read earlier are still valid. Every change of any row of the table moves the mark.
    public let mark = TableMark()
    private let rowByteCountMax: Int

    /// - Parameters:
    ///   - table: Its news must be of each row.
    ///   - countMax: When there are more, values that nobody asked for lately are dropped.
    ///   - rowByteCountMax: No copies are kept of longer rows.
    public init(
        _ name: StaticString, of table: Table<Key, Record>, in store: Store, countMax: Int,
        rowByteCountMax: Int = .max, make: @escaping @Sendable (Key, Record) -> Value
    ) {
        // Proof: the code decides which table it is; such copies are made at each start.
        precondition(table.news == .ofRow, "\(name): the table does not tell which row changed")
        self.table = table
        self.make = make
        self.rowByteCountMax = rowByteCountMax
        self.kept = Mutex(Kept(values: RecentlyUsed(countMax: countMax)))
        store.follow([table.declaration], as: name) { [weak self] in self?.forget($0) }
    }

    /// The value of the row under `key`; nil when there is no row.
    public func value(_ key: Key, in transaction: borrowing ReadTransaction) throws -> Dated<Value>? {
        // A write may have changed the row itself.
        let known: Dated<Value>? = kept.withLock { kept in
            if transaction.isWriting { return nil }
            // Not with the transaction's date: the transaction may see a change that is not announced yet.
            return kept.values.find(key).map { Dated($0, asOf: kept.changedAt) }
        }
        if let known { return known }
        var rowByteCount = 0
        let record = try transaction.withValue(table, key) { bytes in
            rowByteCount = bytes.count
            return try transaction.record(table, bytes)
        }
        guard let record else { return nil }
        let made = Dated(make(key, record), asOf: transaction.snapshot)
        if rowByteCount <= rowByteCountMax, !transaction.isWriting {
            kept.withLock { if made.asOf >= $0.changedAt { $0.values.insert(key, made.value) } }
        }
        return made
    }

    /// How many values are in memory.
    public var count: Int { kept.withLock { $0.values.count } }

    private func forget(_ announcement: Announcement) {
        let keys = announcement.keys(of: table)
        kept.withLock { kept in
            for key in keys { kept.values.remove(key) }
            kept.changedAt = announcement.snapshot
        }
        mark.move(to: announcement.snapshot)
    }
}

/// A dictionary of at most `countMax` entries. When it is full, an entry that was not asked for lately is removed
/// (CLOCK: a hand goes round and takes the first entry that nobody used since the hand came by). Each call costs the
/// same, however many entries there are.
struct RecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        let key: Key
        var value: Value
        var isUsed = false
    }

    private var places: [Key: Int] = [:]
    private var entries: [Entry] = []
    private var hand = 0
    private let countMax: Int
    /// If all entries are in use, some entry is removed after this many steps.
    private static var stepsMax: Int { 64 }

    init(countMax: Int) { self.countMax = max(1, countMax) }

    var count: Int { entries.count }

    mutating func find(_ key: Key) -> Value? {
        guard let place = places[key] else { return nil }
        entries[place].isUsed = true
        return entries[place].value
    }

    mutating func insert(_ key: Key, _ value: Value) {
        if let place = places[key] {
            entries[place].value = value
            return
        }
        if entries.count >= countMax { makeRoom() }
        places[key] = entries.count
        entries.append(Entry(key: key, value: value))
    }

    mutating func remove(_ key: Key) {
        guard let place = places.removeValue(forKey: key), let last = entries.popLast(), place < entries.count else {
            return
        }
        // The last entry moves to the place that is free now.
        entries[place] = last
        places[last.key] = place
    }

    private mutating func makeRoom() {
        for _ in 0..<Self.stepsMax {
            hand = (hand + 1) % entries.count
            guard entries[hand].isUsed else { break }
            entries[hand].isUsed = false
        }
        remove(entries[hand].key)
    }
}
