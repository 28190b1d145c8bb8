import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Store

/// A node that comes back, and lacks many entries.
@Suite struct NodeFarBehindTests {
    /// Holds the node up before each part of the heads, or of the entries, that it takes.
    private final class Parts: Sendable {
        private struct State {
            var question = MemoryJournal.Question.entries
            var askedCount = 0
            var allowedCount = Int.max
        }

        private let state = Mutex(State())

        /// How many parts the node has asked for since the last call of `hold`.
        var askedCount: Int { state.withLock { $0.askedCount } }

        func hold(_ question: MemoryJournal.Question) {
            state.withLock { $0 = State(question: question, askedCount: 0, allowedCount: 0) }
        }

        func allow(_ count: Int) { state.withLock { $0.allowedCount = count } }

        /// Waits for ten seconds at most, and not again after that, so that each test ends in any case.
        func pass(_ question: MemoryJournal.Question) {
            let isHeld = state.withLock { state in
                if state.question == question { state.askedCount += 1 }
                return state.question == question
            }
            guard isHeld else { return }
            for _ in 0..<10_000 {
                if state.withLock({ $0.askedCount <= $0.allowedCount }) { return }
                usleep(1_000)
            }
            allow(.max)
        }
    }

    /// The entries that the node lacks. The test's journal gives out three of them at a time, and ten heads.
    private static let entryCount = 30

    /// Runs `body` with a node that has served, lacks the entries, and waits for the first part of their heads, or of
    /// the entries themselves.
    private func withNodeFarBehind(
        waitingFor question: MemoryJournal.Question = .entries,
        _ body: (_ node: JournaledNodes.Node, Parts) async throws -> Void
    ) async throws {
        try await withJournaledNodes(1) { cluster in
            try await withTemporaryDirectory { directory in
                let parts = Parts()
                let node = try Self.open(directory, cluster.rows, parts)
                defer { Self.close(node.store, parts) }
                try await node.store.write { _ in }
                node.journal.isAway.store(true, ordering: .relaxed)
                try await until("the node has noticed") { node.store.journalStatus?.isConnected == false }
                for number in 0..<Self.entryCount {
                    let key = [UInt8(number)]
                    try await cluster.nodes[0].store.write { try $0.put(JournaledNodes.values, key, [1]) }
                }
                parts.hold(question)
                node.journal.isAway.store(false, ordering: .relaxed)
                try await until("the node asks for them") { parts.askedCount == 1 }
                try await body(node, parts)
            }
        }
    }

    private static func open(
        _ directory: String, _ rows: MemoryJournal.Rows, _ parts: Parts
    ) throws -> JournaledNodes.Node {
        try JournaledNodes.join(directory)
        let failure = JournaledNodes.Failure()
        let journal = MemoryJournal(rows, headsAtOnceMax: 10) { question in
            parts.pass(question)
            return nil
        }
        let store = try openTestStore(
            at: directory, tables: JournaledNodes.tables,
            { configuration in
                configuration.journal = journal
                configuration.durability = .relaxed
                configuration.relaxedSyncInterval = .zero
                configuration.limits.journal.patience = .zero
            }, onFatal: { failure.error = $0 })
        return JournaledNodes.Node(store: store, journal: journal, failure: failure)
    }

    /// A test may block its thread for the moment that closing takes.
    private static func close(_ store: Store, _ parts: Parts) {
        parts.allow(.max)
        store.close()
    }

    @Test(arguments: [MemoryJournal.Question.heads, .entries])
    func `It refuses changes when its patience is over, instead of letting them wait`(
        _ question: MemoryJournal.Question
    ) async throws {
        try await withNodeFarBehind(waitingFor: question) { node, parts in
            let outcomes = WriteOutcomes()
            try node.store.write {
                try $0.put(JournaledNodes.values, [200], [1])
            } completion: {
                outcomes.record(0, $0)
            }
            // A question for the journal's end, as a stream or a refusal asks it.
            try node.store.write { _ in
            } completion: {
                outcomes.record(1, $0)
            }
            parts.allow(1)
            let errors = outcomes.wait(for: 2).map(\.error)
            #expect(errors == [.journal(.behind), .journal(.behind)])
            parts.allow(.max)
            try await until("the node writes again") {
                (try? await node.store.write { try $0.put(JournaledNodes.values, [200], [2]) }) != nil
            }
            let isThere = try node.store.read { try $0.exists(JournaledNodes.values, [UInt8(Self.entryCount - 1)]) }
            #expect(isThere)
            #expect(node.failure.error == nil)
        }
    }

    /// The node is dropped from the journal's list by the position with which it registers, which is the synced one.
    @Test func `Its position moves while it takes the entries`() async throws {
        try await withNodeFarBehind { node, parts in
            let before = try #require(node.store.journalStatus)
            parts.allow(2)
            try await until("it has taken two parts") { parts.askedCount == 3 }
            let after = try #require(node.store.journalStatus)
            #expect(after.position == before.position + 6)
            #expect(after.syncedPosition == after.position)
            #expect(after.behindCount == before.behindCount - 6)
            #expect(after.endSeenAt == before.endSeenAt)
        }
    }

    @Test(arguments: [MemoryJournal.Question.heads, .entries])
    func `A stop does not wait for all entries`(_ question: MemoryJournal.Question) async throws {
        try await withNodeFarBehind(waitingFor: question) { node, parts in
            let store = node.store
            let closing = OSThread(name: "closing") { store.close() }
            defer { Self.close(closing, parts) }
            try await until("the store takes no writes") { Self.isClosed(store) }
            parts.allow(1)
            Self.wait(for: closing)
            #expect(parts.askedCount == 1)
            #expect(node.failure.error == nil)
        }
    }

    private static func isClosed(_ store: Store) -> Bool {
        do throws(StoreError) {
            try store.write { _ in
            } completion: { _ in
            }
            return false
        } catch {
            return error == .closed
        }
    }

    /// A test may block its thread for the moment that a stop takes.
    private static func wait(for thread: OSThread) { thread.join() }

    private static func close(_ thread: OSThread, _ parts: Parts) {
        parts.allow(.max)
        thread.join()
    }
}
