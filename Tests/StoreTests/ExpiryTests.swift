import Base
import Store
import TestSupport
import Testing

@Suite struct ExpiryTests {
    private func put(_ store: Store, _ id: UInt64, at time: Int64) throws {
        try store.writeBlocking { transaction in
            let key = UserKey(tenant: "a", id: id)
            try transaction.put(users, key, TestRecord(id))
            try transaction.scheduleExpiry(at: Timestamp(microseconds: time), users, key)
        }
    }

    private func sweep(_ store: Store, _ time: Int64, limit: Int = 100) async throws -> Int {
        try await store.sweep(now: Timestamp(microseconds: time), limit: limit) { transaction, expired in
            #expect(expired.tableID == users.id)
            try transaction.delete(users, UserKey(expired.key))
        }
    }

    @Test func whatIsDueIsSweptInSlices() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            for (id, time) in [(1, 300), (2, 100), (3, 200), (4, 400), (5, -7)] as [(UInt64, Int64)] {
                try put(store, id, at: time)
            }
            #expect(try await sweep(store, 0) == 1)
            #expect(try await sweep(store, 300, limit: 2) == 2)
            #expect(try store.read { try $0.exists(users, UserKey(tenant: "a", id: 1)) })
            #expect(try await sweep(store, 300, limit: 2) == 1)
            #expect(try await sweep(store, 300, limit: 2) == 0)
            #expect(try store.read { try $0.count(users) } == 1)
            #expect(try await sweep(store, .max) == 1)
            #expect(try store.read { try $0.count(users) } == 0)
        }
    }

    @Test func aCancelledExpiryIsNotSwept() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            try put(store, 1, at: 100)
            let key = UserKey(tenant: "a", id: 1)
            let cancelled = try await store.write { transaction in
                [
                    try transaction.cancelExpiry(at: Timestamp(microseconds: 99), users, key),
                    try transaction.cancelExpiry(at: Timestamp(microseconds: 100), users, key),
                ]
            }
            #expect(cancelled == [false, true])
            #expect(try await sweep(store, 1_000) == 0)
        }
    }

    @Test func aHandlerThatThrowsLeavesEverythingScheduled() async throws {
        struct Stop: Error {}
        try await withTemporaryStore(tables: testTables) { store in
            try put(store, 1, at: 100)
            await #expect(throws: Stop.self) {
                _ = try await store.sweep(now: Timestamp(microseconds: 100), limit: 10) { _, _ in throw Stop() }
            }
            #expect(try await sweep(store, 100) == 1)
        }
    }

    @Test func aHandlerMayScheduleAgain() async throws {
        try await withTemporaryStore(tables: testTables) { store in
            try put(store, 1, at: 100)
            let count = try await store.sweep(now: Timestamp(microseconds: 100), limit: 10) { transaction, expired in
                try transaction.scheduleExpiry(at: Timestamp(microseconds: 500), users, UserKey(expired.key))
            }
            #expect(count == 1)
            #expect(try await sweep(store, 499) == 0)
            #expect(try await sweep(store, 500) == 1)
        }
    }

    @Test(arguments: [502, 503]) func expiringKeysAreShorter(byteCount: Int) throws {
        try withTemporaryStore(tables: testTables) { store in
            let key = [UInt8](repeating: 1, count: byteCount)
            if byteCount <= 502 {
                try store.writeBlocking { try $0.scheduleExpiry(at: .zero, blobs, key) }
            } else {
                #expect(throws: StoreError.keySize) {
                    try store.writeBlocking { try $0.scheduleExpiry(at: .zero, blobs, key) }
                }
            }
        }
    }
}

extension UserKey {
    /// From the key's own bytes.
    fileprivate init(_ bytes: [UInt8]) {
        self.init(
            tenant: Text(unchecked: Array(bytes.dropLast(9))),
            id: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }
}
