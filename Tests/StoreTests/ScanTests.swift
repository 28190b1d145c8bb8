import Base
import Messages
import Store
import TestSupport
import Testing

@Suite struct ScanTests {
    private static let keys: [[UInt8]] = [
        [1], [1, 0], [1, 0xFF], [1, 0xFF, 0xFF], [2], [2, 5], [0xFF], [0xFF, 0xFF], [0xFF, 0xFF, 3],
    ]

    private func withKeys(_ body: (Store) throws -> Void) throws {
        try withTemporaryStore(tables: testTables) { store in
            try store.writeBlocking { transaction in
                for key in Self.keys { try transaction.put(blobs, key, key) }
            }
            try body(store)
        }
    }

    private func scan(
        _ store: Store, _ prefix: [UInt8], from start: ScanStart = .first, reversed: Bool = false, limit: Int = .max
    ) throws -> [[UInt8]] {
        var found: [[UInt8]] = []
        try store.read { transaction in
            try transaction.scan(blobs, prefix: prefix, from: start, reversed: reversed, limit: limit) { row in
                #expect(try row.key == [UInt8](row.value))
                found.append(try row.key)
                return true
            }
        }
        return found
    }

    @Test func aScanStaysWithinItsPrefix() throws {
        try withKeys { store throws in
            for prefix in [[], [1], [1, 0xFF], [2], [3], [0xFF], [0xFF, 0xFF]] as [[UInt8]] {
                let expected = Self.keys.filter { $0.starts(with: prefix) }
                #expect(try scan(store, prefix) == expected)
                #expect(try scan(store, prefix, reversed: true) == expected.reversed())
            }
        }
    }

    @Test func aScanResumesAtOrAfterAKey() throws {
        try withKeys { store throws in
            let all = Self.keys
            for start in all + [[0], [1, 7], [3], [0xFF, 0xFF, 0xFF]] {
                func isAfter(_ key: [UInt8]) -> Bool { start.lexicographicallyPrecedes(key) }
                func isBefore(_ key: [UInt8]) -> Bool { key.lexicographicallyPrecedes(start) }
                for prefix in [[], [1], [2], [0xFF]] as [[UInt8]] {
                    let within = all.filter { $0.starts(with: prefix) }
                    #expect(try scan(store, prefix, from: .at(start)) == within.filter { !isBefore($0) })
                    #expect(try scan(store, prefix, from: .after(start)) == within.filter(isAfter))
                    let backwards = Array(within.reversed())
                    #expect(
                        try scan(store, prefix, from: .at(start), reversed: true) == backwards.filter { !isAfter($0) })
                    #expect(
                        try scan(store, prefix, from: .after(start), reversed: true) == backwards.filter(isBefore))
                }
            }
        }
    }

    @Test func aScanEndsAtItsLimitOrWhenToldTo() throws {
        try withKeys { store throws in
            #expect(try scan(store, [], limit: 2) == Array(Self.keys[..<2]))
            #expect(try scan(store, [], limit: 0) == [])
            var count = 0
            try store.read { transaction in
                try transaction.scan(blobs) { _ in
                    count += 1
                    return count < 3
                }
            }
            #expect(count == 3)
        }
    }

    @Test func oneTenantsScanDoesNotSeeAnothers() throws {
        try withTemporaryStore(tables: testTables) { store in
            try store.writeBlocking { transaction in
                for (tenant, id) in [("", 1), ("a", 2), ("ab", 3), ("a", 4)] as [(String, UInt64)] {
                    try transaction.put(users, UserKey(tenant: .init(tenant), id: id), TestRecord(id))
                }
            }
            var ids: [UInt64] = []
            try store.read { transaction in
                try transaction.scan(users, prefix: TenantPrefix("a")) { row in
                    ids.append(try row.record.id)
                    return true
                }
            }
            #expect(ids == [2, 4])
        }
    }

    @Test func whatTheBodyThrowsEndsTheScan() throws {
        struct Stop: Error {}
        try withKeys { store throws in
            #expect(throws: Stop.self) {
                try store.read { try $0.scan(blobs) { _ in throw Stop() } }
            }
        }
    }
}
