import Base
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Store

/// The promises of several stores over one journal.
@Suite struct JournaledStoreTests {
    @Test func manyWritesOnThreeNodesWithFaultsMakeThreeEqualStores() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        let random = Mutex(SeededGenerator(seed: seed))
        let hasFaults = Mutex(true)
        let fault: @Sendable (MemoryJournal.Question) -> MemoryJournal.Fault? = { _ in
            guard hasFaults.withLock({ $0 }) else { return nil }
            return random.withLock { random in
                switch random.below(20) {
                case 0: .before
                case 1: .after
                default: nil
                }
            }
        }
        let counts = Counts()
        let configure = { (configuration: inout StoreConfiguration) in
            configuration.limits.journal.patience = .seconds(60)
            // The nodes ask for a turn after three lost races.
            configuration.limits.journal.outrunTimeBeforeTurn = .zero
            configuration.limits.journal.turnPause = .zero
        }
        try await withJournaledNodes(3, configure, fault: fault) { cluster in
            await withTaskGroup(of: Void.self) { group in
                for client in 0..<12 {
                    let store = cluster.nodes[client % 3].store
                    group.addTask {
                        for round in 0..<40 {
                            await Self.addOne(store, client, round, counts, seed)
                            await Self.claim(store, client, round, counts, seed)
                        }
                    }
                }
            }
            hasFaults.withLock { $0 = false }
            try await cluster.catchUp()
            let contents = try (0..<3).map(cluster.contents)
            #expect(contents[0] == contents[1] && contents[1] == contents[2], "seed \(seed)")
            let sum = try #require(contents[0][JournaledNodes.values.id]?[[0]])
            let counted = counts.all.withLock { $0 }
            #expect(counted.unknown == 0, "no node had to give up what it had sent; seed \(seed)")
            #expect(Int(sum[0]) * 256 + Int(sum[1]) == counted.added, "seed \(seed)")
            #expect(counted.claimed.count == 40 && counted.claimed.values.allSatisfy { $0 == 1 }, "seed \(seed)")
            #expect(cluster.nodes.allSatisfy { $0.failure.error == nil })
        }
    }

    private static func historyID(of store: Store) throws -> [UInt8] { try store.read { try $0.historyID() } }

    private static func historyIDOfItsOwn() throws -> [UInt8] {
        try withTemporaryStore(tables: JournaledNodes.tables) { store in try historyID(of: store) }
    }

    /// A client asks any node whether its store still has the client's writes.
    @Test func `The nodes share the history of their writes, and a store of its own has another`() async throws {
        try await withJournaledNodes(2, { _ in }, fault: { _ in nil }) { cluster in
            let first = try Self.historyID(of: cluster.nodes[0].store)
            let second = try Self.historyID(of: cluster.nodes[1].store)
            #expect(first == second && first.count == 16)
            let alone = try Self.historyIDOfItsOwn()
            #expect(alone != first)
        }
    }

    /// The node sees a further row with each question that it asks.
    @Test func aJournalThatGrowsWithEachQuestionIsReached() async throws {
        let growing = Mutex<MemoryJournal.Rows?>(nil)
        let grow: @Sendable (MemoryJournal.Question) -> MemoryJournal.Fault? = { question in
            guard question == .heads, let rows = growing.withLock({ $0 }) else { return nil }
            rows.edit { rows in
                guard let last = rows.last?.head.mark else { return }
                let position = last.position + 1
                let mark = JournalMark(position: position, hash: JournalHash(SIMD4(position, 1, 2, 3)))
                let head = JournalHead(mark: mark, previousHash: last.hash, batchID: BatchID(SIMD2(position, 99)))
                rows.append(MemoryJournal.Row(head: head, bytes: []))
            }
            return nil
        }
        try await withJournaledNodes(1, fault: grow) { cluster in
            try await cluster.catchUp()
            growing.withLock { $0 = cluster.rows }
            for _ in 0..<20 { try await cluster.nodes[0].store.reachJournalEnd() }
            growing.withLock { $0 = nil }
            #expect(cluster.nodes[0].failure.error == nil)
        }
    }

    private final class Counts: Sendable {
        struct All {
            var added = 0
            var unknown = 0
            var claimed: [UInt8: Int] = [:]
        }
        let all = Mutex(All())
    }

    private struct Taken: Error {}

    private static func addOne(_ store: Store, _ client: Int, _ round: Int, _ counts: Counts, _ seed: UInt64) async {
        do {
            try await store.write { transaction in
                let old = try transaction.get(JournaledNodes.values, [0]) ?? [0, 0]
                let sum = Int(old[0]) * 256 + Int(old[1]) + 1
                try transaction.put(JournaledNodes.values, [0], [UInt8(sum / 256), UInt8(sum % 256)])
                let key = UserKey(tenant: Text("t\(client)"), id: UInt64(round % 5))
                try transaction.put(JournaledNodes.owned, key, [UInt8](repeating: 1, count: round))
                try transaction.appendEvent(tenant: key.tenant, [UInt8(client), UInt8(round)])
            }
            counts.all.withLock { $0.added += 1 }
        } catch StoreError.journal(.outcomeUnknown) {
            counts.all.withLock { $0.unknown += 1 }
        } catch {
            Issue.record("\(error), seed \(seed)")
        }
    }

    /// Each client wants the same keys.
    private static func claim(_ store: Store, _ client: Int, _ round: Int, _ counts: Counts, _ seed: UInt64) async {
        let key: [UInt8] = [1, UInt8(round)]
        do {
            try await store.write { transaction in
                guard try transaction.put(ifAbsent: JournaledNodes.values, key, [UInt8(client)]) else { throw Taken() }
            }
            counts.all.withLock { $0.claimed[UInt8(round), default: 0] += 1 }
        } catch is Taken {
            // Another client has the key, and the row is there to be seen.
            let owner = try? store.read { try $0.get(JournaledNodes.values, key) }
            #expect((owner ?? nil)?.count == 1, "seed \(seed)")
        } catch {
            Issue.record("\(error), seed \(seed)")
        }
    }

    @Test func aNodeRefusesNothingThatAnotherNodeHasMadePossible() async throws {
        struct Missing: Error {}
        try await withJournaledNodes(2) { cluster in
            let (first, second) = (cluster.nodes[0].store, cluster.nodes[1].store)
            for number in 0..<100 {
                let key: [UInt8] = [2, UInt8(number)]
                try await first.write { try $0.put(JournaledNodes.values, key, [1]) }
                try await second.write { if try !$0.delete(JournaledNodes.values, key) { throw Missing() } }
            }
        }
    }

    @Test func whatFollowsARowIsToldOnEveryNode() async throws {
        try await withJournaledNodes(2) { cluster in
            let told = Mutex<[ChangeTopic]>([])
            cluster.nodes[1].store.listen { topics in told.withLock { $0 += topics } }
            try await cluster.nodes[0].store.write { transaction in
                try transaction.put(JournaledNodes.values, [9], [1])
                transaction.announce(ChangeTopic("own", [4]))
            }
            try await cluster.catchUp()
            #expect(told.withLock { $0 } == [ChangeTopic("values", [9]), ChangeTopic("own", [4])])
        }
    }

    @Test func anEntryBecomesNoLongerThanItsLimit() async throws {
        let configure = { (configuration: inout StoreConfiguration) in
            configuration.limits.journal.batchByteCountMax = 20_000
            configuration.limits.journal.entryByteCountMax = 50_000
        }
        try await withJournaledNodes(1, configure) { cluster in
            let store = cluster.nodes[0].store
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        try await store.write {
                            try $0.put(JournaledNodes.values, [3, UInt8(number)], [UInt8](repeating: 0, count: 9_000))
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await store.write { try $0.put(JournaledNodes.values, [4], [UInt8](repeating: 0, count: 49_999)) }
            await #expect(throws: StoreError.journal(.entryTooLarge)) {
                try await store.write { try $0.put(JournaledNodes.values, [5], [UInt8](repeating: 0, count: 50_000)) }
            }
            #expect(try store.read { try !$0.exists(JournaledNodes.values, [5]) })
            cluster.rows.edit { rows in
                #expect(rows.dropLast().allSatisfy { $0.bytes.count < 20_500 })
            }
        }
    }

    /// Large writes that wait together are tried together only as far as they fit.
    @Test func requestsThatFillAnEntryEachAreNotRunAgainForEachOther() async throws {
        let count = 64
        let runs = Atomic<Int>(0)
        try await withJournaledNodes(1, { $0.limits.journal.batchByteCountMax = 20_000 }) { cluster in
            let (store, gate, outcomes) = (cluster.nodes[0].store, WriterGate(), WriteOutcomes())
            try gate.close(store)
            for number in 0..<count {
                try store.write { transaction in
                    runs.add(1, ordering: .relaxed)
                    let value = [UInt8](repeating: 0, count: 15_000)
                    try transaction.put(JournaledNodes.values, [7, UInt8(number)], value)
                } completion: {
                    outcomes.record(number, $0)
                }
            }
            gate.open()
            #expect(outcomes.wait(for: count).allSatisfy { $0.error == nil })
            // Halving finds the first part; after that, each entry tries one part that is too large.
            #expect(runs.load(ordering: .relaxed) <= 2 * count + 4 * count)
        }
    }
}
