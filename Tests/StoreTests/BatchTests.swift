import Base
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A batch as a list of changes, and bodies that run twice.
@Suite struct BatchTests {
    private static let owned = Table<UserKey, [UInt8]>(id: 30, name: "owned", owner: .keyPrefix, purge: .withTenant)
    private static let tables = testTables + [owned.declaration]

    /// Every row of the store, except the rows about this store alone.
    private static func rows(_ store: Store) throws -> [UInt8: [[UInt8]: [UInt8]]] {
        try store.read { transaction in
            var rows: [UInt8: [[UInt8]: [UInt8]]] = [:]
            for declaration in Schema.tables(with: tables) {
                let table = Table<[UInt8], [UInt8]>(id: declaration.id, name: "", owner: .nobody, purge: .noTenant)
                try transaction.scan(table) { row in
                    let key = try row.key
                    let isOwn = table.id == Schema.meta.id && key != EventLog.sequenceKey
                    if !isOwn { rows[table.id, default: [:]][key] = [UInt8](row.value) }
                    return true
                }
            }
            return rows
        }
    }

    @Test func theListsOfBatchesMakeTheSameStoreElsewhere() throws {
        struct Refused: Error {}
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SeededGenerator(seed: seed)
        let batches = Mutex<[StoreChanges]>([])
        try withTemporaryStore(
            tables: Self.tables,
            { $0.beforeCommit = { changes in batches.withLock { $0.append(changes) } } }
        ) { store in
            for round in 0..<200 {
                let start = random
                _ = try? store.writeBlocking { transaction in
                    var random = start
                    for _ in 0..<(1 + random.below(5)) {
                        let key = UserKey(tenant: Text("t\(random.below(3))"), id: UInt64(random.below(9)))
                        switch random.below(6) {
                        case 0, 1: try transaction.put(Self.owned, key, random.bytes(random.below(99)))
                        case 2: try transaction.delete(Self.owned, key)
                        case 3: try transaction.appendEvent(tenant: key.tenant, random.bytes(9))
                        case 4:
                            try transaction.put(ending, [UInt8(key.id)], EndingRecord())
                            try transaction.scheduleExpiry(at: .zero, ending, [UInt8(key.id)])
                        default:
                            _ = try transaction.deleteEvents(tenant: key.tenant, limit: 2, now: .zero) { _ in true }
                        }
                    }
                    transaction.announce(ChangeTopic("round", [UInt8(round)]))
                    if random.below(5) == 0 { throw Refused() }
                }
                _ = random.next()
            }
            let taken = batches.withLock { $0 }
            let topics = taken.flatMap(\.topics)
            #expect(topics.count { $0.kind == "round" && $0.name.count == 1 } > 100, "seed \(seed)")
            let logs = Set((0..<3).map { ReadTransaction.eventsTopic(tenant: Text("t\($0)")) })
            #expect(topics.allSatisfy { $0.kind == "round" || logs.contains($0) }, "nothing else but logs that grew")
            try withTemporaryStore(tables: Self.tables) { copy in
                for batch in taken { try copy.writeBlocking { try $0.apply(batch.changes) } }
                let (expected, found) = (try Self.rows(store), try Self.rows(copy))
                for table in Schema.tables(with: Self.tables) {
                    #expect(found[table.id] == expected[table.id], "\(table.name), seed \(seed)")
                }
            }
        }
    }

    @Test func aBatchThatIsNotTakenDownFails() throws {
        let isAway = Atomic(false)
        try withTemporaryStore(
            tables: Self.tables,
            { configuration in
                configuration.beforeCommit = { _ throws(StoreError) in
                    if isAway.load(ordering: .relaxed) { throw .overloaded }
                }
            }
        ) { store in
            try store.writeBlocking { try $0.put(blobs, [1], [1]) }
            isAway.store(true, ordering: .relaxed)
            #expect(throws: StoreError.overloaded) { try store.writeBlocking { try $0.put(blobs, [2], [2]) } }
            #expect(try store.read { try $0.count(blobs) } == 1)
        }
    }

    @Test func aBodyRunsAgainOverWhatAnotherNodeCommitted() throws {
        let isOpen = Atomic(false)
        try withTemporaryStore(
            tables: Self.tables,
            { configuration in
                configuration.beforeRerun = { transaction throws(StoreError) in
                    if isOpen.load(ordering: .relaxed) { try transaction.put(blobs, [9], [7]) }
                }
            }
        ) { store in
            isOpen.store(true, ordering: .relaxed)
            let seen = Mutex<[[UInt8]?]>([])
            let kept = try store.writeBlocking { transaction in
                let found = try transaction.get(blobs, [9])
                seen.withLock { $0.append(found) }
                return try transaction.put(ifAbsent: blobs, [9], [1])
            }
            #expect(!kept)
            #expect(seen.withLock { $0 } == [nil, [7]])
        }
    }
}
