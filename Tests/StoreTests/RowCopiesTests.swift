import Base
import Messages
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct RowCopiesTests {
    private static let settings = Table<TenantPrefix, StoredCount>(
        id: 20, name: "settings", owner: .keyPrefix, purge: .withTenant, news: .ofRow)
    private static let keys = Table<TextKey, StoredCount>(
        id: 21, name: "keys", owner: .nobody, purge: .noTenant, news: .ofTable)
    private static let refusals = Table<TenantTextKey, StoredCount>(
        id: 22, name: "refusals", owner: .keyPrefix, purge: .withTenant, news: .ofTenant)
    private static let other = Table<TextKey, StoredCount>(id: 23, name: "other", owner: .nobody, purge: .noTenant)
    private static let tables = [
        settings.declaration, keys.declaration, refusals.declaration, other.declaration,
    ]

    private func put(_ tenant: Text, _ count: Int64, in store: Store) throws {
        try store.writeBlocking { try $0.put(Self.settings, TenantPrefix(tenant), StoredCount(count: count)) }
    }

    private struct Copies {
        let copies: RowCopies<TenantPrefix, StoredCount, Int64>
        let store: Store
        private let made = Counter()

        init(_ store: Store) {
            self.store = store
            self.copies = RowCopies("settings", of: settings, in: store, countMax: 100) { [made] _, record in
                made.add()
                return record.count
            }
        }

        var madeCount: UInt64 { made.value }

        func value(_ tenant: Text) throws -> Int64? {
            try store.read { try copies.value(TenantPrefix(tenant), in: $0)?.value }
        }
    }

    @Test func `A value is made once, and again when its row was changed`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let copies = Copies(store)
            try put("a", 1, in: store)
            try put("b", 1, in: store)
            for _ in 0..<3 { #expect(try copies.value("a") == 1 && copies.value("b") == 1) }
            #expect(copies.madeCount == 2)
            try put("a", 2, in: store)
            for _ in 0..<3 { #expect(try copies.value("a") == 2 && copies.value("b") == 1) }
            #expect(copies.madeCount == 3, "b was not changed")
            try store.writeBlocking { _ = try $0.delete(Self.settings, TenantPrefix("a")) }
            #expect(try copies.value("a") == nil)
        }
    }

    @Test func `What a failed write changed is never seen`() throws {
        struct Refused: Error {}
        try withTemporaryStore(tables: Self.tables) { store in
            let copies = Copies(store)
            try put("a", 1, in: store)
            #expect(throws: Refused.self) {
                try store.writeBlocking { transaction in
                    try transaction.put(Self.settings, TenantPrefix("a"), StoredCount(count: 2))
                    // A write sees its own changes; none of them is kept.
                    #expect(try copies.copies.value(TenantPrefix("a"), in: transaction.reading)?.value == 2)
                    throw Refused()
                }
            }
            #expect(try copies.value("a") == 1)
        }
    }

    @Test func `An old snapshot does not bring an old value back`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let copies = Copies(store)
            try put("a", 1, in: store)
            try put("b", 1, in: store)
            try store.read { old in
                _ = try copies.copies.value(TenantPrefix("b"), in: old)
                try put("a", 2, in: store)
                try put("b", 2, in: store)
                let a = try #require(try copies.copies.value(TenantPrefix("a"), in: old))
                #expect(a.value == 1, "its snapshot is older than the change")
                #expect(!copies.copies.mark.isCurrent(asOf: a.asOf))
                let b = try #require(try copies.copies.value(TenantPrefix("b"), in: old))
                #expect(b.value == 1 && !copies.copies.mark.isCurrent(asOf: b.asOf))
            }
            #expect(try copies.value("a") == 2 && copies.value("b") == 2)
        }
    }

    @Test func `A dated value is current until one of its tables changes`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let mark = TableMark("keys", of: [Self.keys.declaration, Self.settings.declaration], in: store)
            func dated() throws -> Dated<Int> { try store.read { $0.dated(1) } }
            var value = try dated()
            #expect(mark.isCurrent(asOf: value.asOf))
            try store.writeBlocking { try $0.put(Self.other, TextKey("k"), StoredCount(count: 1)) }
            #expect(mark.isCurrent(asOf: value.asOf), "nobody follows that table")
            try store.writeBlocking { try $0.put(Self.keys, TextKey("k"), StoredCount(count: 1)) }
            #expect(!mark.isCurrent(asOf: value.asOf))
            value = try dated()
            #expect(mark.isCurrent(asOf: value.asOf))
            try put("a", 1, in: store)
            #expect(!mark.isCurrent(asOf: value.asOf))
        }
    }

    /// A write is answered after its copies are refreshed: a caller that waited never sees the earlier value.
    @Test func `Copies are refreshed before the write is answered, and before anybody is woken`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let copies = Copies(store)
            let seen = Mutex<[Int64?]>([])
            store.listen { _ in
                let value = try? copies.value("a")
                seen.withLock { $0.append(value) }
            }
            for count in 1...50 {
                try put("a", Int64(count), in: store)
                #expect(try copies.value("a") == Int64(count))
            }
            #expect(seen.withLock { $0 } == (1...50).map { Int64($0) })
        }
    }

    @Test func `A refresh that failed is tried again with the next announcement`() throws {
        struct Unreadable: Error {}
        let failures = Mutex<[String]>([])
        try withTemporaryStore(
            tables: Self.tables,
            { $0.onCopyFailure = { copy, _ in failures.withLock { $0.append("\(copy)") } } }
        ) { store in
            let outcomes = Mutex<[Bool]>([false, false, true])
            let calls = Mutex(0)
            store.follow([Self.keys.declaration], as: "keys") { _ in
                calls.withLock { $0 += 1 }
                if outcomes.withLock({ !$0.removeFirst() }) { throw Unreadable() }
            }
            try store.writeBlocking { try $0.put(Self.keys, TextKey("k"), StoredCount(count: 1)) }
            for _ in 0..<5 { try store.writeBlocking { $0.announce(ChangeTopic("something else")) } }
            #expect(calls.withLock { $0 } == 3)
            #expect(failures.withLock { $0 } == ["keys", "keys"])
        }
    }

    @Test func `A table says what its changed rows announce`() throws {
        try withTemporaryStore(tables: Self.tables) { store in
            let topics = Mutex<[ChangeTopic]>([])
            store.listen { announced in topics.withLock { $0 += announced } }
            try store.writeBlocking { transaction in
                for number in 0..<3 {
                    try transaction.put(Self.refusals, TenantTextKey("a", Text("\(number)")), StoredCount(count: 1))
                }
                try transaction.put(Self.settings, TenantPrefix("a"), StoredCount(count: 1))
                try transaction.put(Self.keys, TextKey("k"), StoredCount(count: 1))
                try transaction.put(Self.other, TextKey("k"), StoredCount(count: 1))
            }
            try store.writeBlocking { transaction in
                try transaction.delete(Self.refusals, TenantTextKey("a", "1"))
                try transaction.delete(Self.refusals, TenantTextKey("b", "1"))
            }
            #expect(
                topics.withLock { $0 } == [
                    Self.refusals.topic(ofTenant: "a"), Self.settings.topic(of: TenantPrefix("a")), Self.keys.topic,
                    Self.refusals.topic(ofTenant: "a"),
                ])
        }
    }

    @Test func `There are never more values than may be, and those in use stay`() throws {
        var used = RecentlyUsed<Int, Int>(countMax: 100)
        var random = SeededGenerator(seed: UInt64.random(in: 0...UInt64.max))
        for number in 0..<10_000 {
            used.insert(number, number)
            #expect(used.count <= 100)
            for favourite in [3, 5] where used.find(favourite) == nil {
                #expect(number < 5, "what is asked for all the time was dropped")
            }
            if number > 99, random.below(10) == 0 { used.remove(number - random.below(50) - 10) }
            let other = number - random.below(80)
            if let value = used.find(other) { #expect(value == other) }
        }
    }
}
