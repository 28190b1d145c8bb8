import Base
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Store

/// What a node of a cluster does when its own disk takes no writes.
@Suite struct JournaledDiskTroubleTests {
    private final class Box: Sendable { let value = Atomic<Int32>(0) }

    /// Runs `body` with a healthy node, and one whose commits return the code in the box; 0 stands for the real one.
    private func withFailingNode(
        _ body: (_ healthy: JournaledNodes.Node, _ failing: JournaledNodes.Node, Box) async throws -> Void
    ) async throws {
        let code = Box()
        try await withJournaledNodes(1) { cluster in
            try await withTemporaryDirectory { directory in
                let failing = try Self.node(directory, cluster.rows, code)
                defer { Self.close(failing.store) }
                try await body(cluster.nodes[0], failing, code)
            }
        }
    }

    private static func node(_ directory: String, _ rows: MemoryJournal.Rows, _ code: Box) throws -> JournaledNodes.Node
    {
        try JournaledNodes.join(directory)
        let (journal, failure) = (MemoryJournal(rows), JournaledNodes.Failure())
        var configuration = StoreConfiguration(directory: directory, tables: JournaledNodes.tables)
        configuration.mapByteCount = 256 << 20
        configuration.journal = journal
        configuration.durability = .relaxed
        configuration.limits.fullDiskRetryInterval = .milliseconds(1)
        let environment = try Environment(
            configuration, authenticator: TestAuthenticator(), eventHash: testEventHash)
        let store = try Store(environment) { counters throws(StoreError) in
            try Writer(
                environment, counters: counters, onFatal: { failure.error = $0 }, allocate: FileGrowth.system,
                commitOutcome: { real in
                    let wanted = code.value.load(ordering: .relaxed)
                    return wanted == 0 ? real : wanted
                })
        }
        return JournaledNodes.Node(store: store, journal: journal, failure: failure)
    }

    /// A test may block its thread for the moment that closing takes.
    private static func close(_ store: Store) { store.close() }

    @Test(arguments: [EROFS, ENOSPC])
    func aNodeWhoseDiskTakesNoWritesGoesOnWhenItDoesAgain(_ number: Int32) async throws {
        try await withFailingNode { healthy, failing, code in
            try await failing.store.write { _ in }
            code.value.store(number, ordering: .relaxed)
            try await healthy.store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            await #expect(throws: StoreError.self) { try await failing.store.write { _ in } }
            // A backup that keeps pages is given up by this.
            #expect(try failing.store.statistics().refusals > 0 || number == EROFS)
            code.value.store(0, ordering: .relaxed)
            try await until("the node writes again") { (try? await failing.store.write { _ in }) != nil }
            #expect(try failing.store.read { try $0.get(JournaledNodes.values, [1]) } == [1])
            #expect(failing.failure.error == nil)
        }
    }

    @Test func aNodeThatCannotApplyAnEntryEnds() async throws {
        try await withFailingNode { healthy, failing, code in
            try await failing.store.write { _ in }
            code.value.store(corrupted, ordering: .relaxed)
            try await healthy.store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            await #expect(throws: StoreError.self) { try await failing.store.write { _ in } }
            try await until("the node ends") { failing.failure.error != nil }
            #expect(failing.failure.error == .fatal(code: EIO))
        }
    }

    /// LMDB's MDB_CORRUPTED.
    private var corrupted: Int32 { -30_796 }

    /// The journal keeps what a node has not synced.
    @Test func aNodeWithoutARestSyncsAllTheSame() async throws {
        let configure = { (configuration: inout StoreConfiguration) in
            configuration.relaxedSyncInterval = .milliseconds(5)
        }
        try await withJournaledNodes(1, configure) { cluster in
            let store = cluster.nodes[0].store
            let outcomes = WriteOutcomes()
            Self.writeAgain(store, 400, outcomes)
            let seen = outcomes.wait(for: 400)
            #expect(seen.allSatisfy { $0.error == nil })
            // The number is that of the first write that found an earlier one synced.
            #expect(seen.contains { $0.number > 0 })
        }
    }

    /// Each write queues the next one before it is done, so that the queue is never empty.
    private static func writeAgain(_ store: Store, _ count: Int, _ outcomes: WriteOutcomes) {
        guard count > 0 else { return }
        let synced = Int(store.journalStatus?.syncedPosition ?? 0)
        do {
            try store.write { transaction in
                writeAgain(store, count - 1, outcomes)
                usleep(200)
                try transaction.put(JournaledNodes.values, [UInt8(count % 200)], [1])
            } completion: {
                outcomes.record(synced, $0)
            }
        } catch {
            Issue.record(error)
        }
    }
}
