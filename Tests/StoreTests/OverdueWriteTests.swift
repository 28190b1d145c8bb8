import Base
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Writes whose callers were told that their deadline has passed.
@Suite struct OverdueWriteTests {
    private static func write(
        _ store: Store, until deadline: Instant, _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Void
    ) async throws {
        try await WriteMeter.$current.withValue(WriteMeter(deadline: deadline)) { try await store.write(body) }
    }

    private static func increase(_ count: inout Int) -> Int {
        count += 1
        return count
    }

    @Test func aWriteWhoseDeadlinePassedBeforeItsTurnIsNotMade() async throws {
        try await withJournaledNodes(1) { cluster in
            let store = cluster.nodes[0].store
            await #expect(throws: StoreError.overdue) {
                try await Self.write(store, until: .now) { try $0.put(JournaledNodes.values, [1], [1]) }
            }
            try await Self.write(store, until: .now.advanced(by: .seconds(60))) {
                try $0.put(JournaledNodes.values, [2], [2])
            }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == nil)
            #expect(try store.read { try $0.get(JournaledNodes.values, [2]) } == [2])
        }
    }

    @Test func aWriteThatLostARaceIsLookedAtAgain() async throws {
        try await withJournaledNodes(1) { cluster in
            let (store, rows) = (cluster.nodes[0].store, cluster.rows)
            let deadline = Instant.now.advanced(by: .seconds(1))
            let runCount = Mutex(0)
            await #expect(throws: StoreError.overdue) {
                try await Self.write(store, until: deadline) { transaction in
                    try transaction.put(JournaledNodes.values, [1], [1])
                    guard runCount.withLock({ Self.increase(&$0) }) == 1 else { return }
                    // Another node is first, and takes until the deadline has passed.
                    while Instant.now < deadline { usleep(1_000) }
                    rows.edit { rows in
                        guard let last = rows.last?.head.mark else { return }
                        let mark = JournalMark(
                            position: last.position + 1, hash: JournalHash(SIMD4(repeating: last.position + 1)))
                        let head = JournalHead(mark: mark, previousHash: last.hash, batchID: BatchID(SIMD2(5, 5)))
                        rows.append(MemoryJournal.Row(head: head, bytes: []))
                    }
                }
            }
            #expect(runCount.withLock { $0 } == 1)
            try await store.write { try $0.put(JournaledNodes.values, [2], [2]) }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == nil)
        }
    }

    @Test func withoutAJournalNoDeadlineIsLookedAt() async throws {
        try await withTemporaryDirectory { directory in
            let store = try openTestStore(at: directory, tables: JournaledNodes.tables)
            defer { close(store) }
            try await Self.write(store, until: .now) { try $0.put(JournaledNodes.values, [1], [1]) }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == [1])
        }
    }
}

/// A test may block its thread for the moment that closing takes.
private func close(_ store: Store) { store.close() }
