import Base
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Store

/// What can go wrong with a journal, and what its nodes do then.
@Suite struct JournalTroubleTests {
    @Test func withoutTheEngineWritesAreRefusedAndReadsGoOn() async throws {
        // The engine goes away with the append: a question for heads before it would tell the node that it is away.
        let leaving = Mutex<MemoryJournal?>(nil)
        @Sendable func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            guard question == .append, let journal = leaving.withLock({ $0 }) else { return nil }
            journal.isAway.store(true, ordering: .relaxed)
            return .before
        }
        try await withJournaledNodes(1, fault: fault) { cluster in
            let (store, journal) = (cluster.nodes[0].store, cluster.nodes[0].journal)
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            #expect(store.journalStatus?.isConfirmed == true)
            leaving.withLock { $0 = journal }
            // The entry may have been on its way.
            await #expect(throws: StoreError.journal(.outcomeUnknown)) {
                try await store.write { try $0.put(JournaledNodes.values, [1], [2]) }
            }
            await #expect(throws: StoreError.journal(.away)) {
                try await store.write { try $0.put(JournaledNodes.values, [1], [2]) }
            }
            #expect(store.journalStatus?.isConnected == false)
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == [1])
            leaving.withLock { $0 = nil }
            journal.isAway.store(false, ordering: .relaxed)
            // Writes fail until the next attempt to connect.
            try await until("the node writes again") {
                (try? await store.write { try $0.put(JournaledNodes.values, [1], [3]) }) != nil
            }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == [3])
            #expect(cluster.nodes[0].failure.error == nil)
        }
    }

    /// The engine is away since it owes the answer, and not only since a connection failed.
    @Test func whatWaitedBehindAQuestionWithoutAnAnswerIsRefusedWithoutAFurtherWait() async throws {
        let hanging = Mutex<MemoryJournal?>(nil)
        @Sendable func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            guard question == .heads, let journal = hanging.withLock({ $0 }) else { return nil }
            usleep(3_200_000)
            journal.isAway.store(true, ordering: .relaxed)
            return .before
        }
        try await withJournaledNodes(1, { $0.limits.journal.patience = .seconds(3) }, fault: fault) { cluster in
            let (store, journal) = (cluster.nodes[0].store, cluster.nodes[0].journal)
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            hanging.withLock { $0 = journal }
            let began = Instant.now
            await #expect(throws: StoreError.journal(.away)) { try await store.write { _ in } }
            let duration = Duration.nanoseconds(Instant.now.nanoseconds(since: began))
            // Twice the patience before.
            #expect(duration < .milliseconds(5_500), "\(duration)")
            hanging.withLock { $0 = nil }
            journal.isAway.store(false, ordering: .relaxed)
            try await until("the node writes again") { (try? await store.write { _ in }) != nil }
        }
    }

    /// A question for the journal's end and a refusal, in a batch with a change that was on its way.
    @Test func whatChangesNothingIsNeverSaidToBeUnknown() async throws {
        struct Refused: Error {}
        let isAway = Atomic(false)
        @Sendable func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            question == .append && isAway.load(ordering: .relaxed) ? .before : nil
        }
        try await withJournaledNodes(1, fault: fault) { cluster in
            let (store, gate, outcomes) = (cluster.nodes[0].store, WriterGate(), WriteOutcomes())
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            try gate.close(store)
            try store.write { _ in
            } completion: {
                outcomes.record(0, $0)
            }
            try store.write {
                try $0.put(JournaledNodes.values, [1], [2])
            } completion: {
                outcomes.record(1, $0)
            }
            try store.write { _ in
                throw Refused()
            } completion: {
                outcomes.record(2, $0)
            }
            isAway.store(true, ordering: .relaxed)
            gate.open()
            let errors = outcomes.wait(for: 3).sorted { $0.number < $1.number }.map(\.error)
            #expect(errors == [.journal(.away), .journal(.outcomeUnknown), .journal(.away)])
            isAway.store(false, ordering: .relaxed)
            try await until("the node writes again") { (try? await store.write { _ in }) != nil }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == [2])
        }
    }

    /// As when the standby went away: the node sees the row of its entry, and the engine takes nothing since.
    @Test func anEntryThatIsSeenDoesNotShowThatTheEngineIsBack() async throws {
        enum State: Equatable { case well, losingAnswer, refusing(left: Int) }
        let state = Mutex(State.well)
        @Sendable func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            guard question == .append else { return nil }
            return state.withLock { state in
                switch state {
                case .well: return nil
                case .losingAnswer:
                    state = .refusing(left: 500)
                    return .after
                case .refusing(let left):
                    // In the end the engine takes entries again, so that the test ends in any case.
                    state = left > 1 ? .refusing(left: left - 1) : .well
                    return .before
                }
            }
        }
        try await withJournaledNodes(1, fault: fault) { cluster in
            let store = cluster.nodes[0].store
            try await store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            state.withLock { $0 = .losingAnswer }
            await #expect(throws: StoreError.journal(.outcomeUnknown)) {
                try await store.write { try $0.put(JournaledNodes.values, [1], [2]) }
            }
            await #expect(throws: StoreError.journal(.away)) {
                try await store.write { try $0.put(JournaledNodes.values, [1], [3]) }
            }
            state.withLock { $0 = .well }
            try await until("the node writes again") { (try? await store.write { _ in }) != nil }
            #expect(try store.read { try $0.get(JournaledNodes.values, [1]) } == [2])
        }
    }

    @Test func aJournalThatLostWhatItConfirmedEndsTheNode() async throws {
        try await expectEnd(.journal(.forked(position: 2))) { rows in rows.removeLast() }
    }

    @Test func aJournalWithAnotherEntryInTheSamePlaceEndsTheNode() async throws {
        try await expectEnd(.journal(.forked(position: 2))) { rows in
            let old = rows[2].head
            let other = JournalMark(position: 2, hash: JournalHash(SIMD4(1, 1, 1, 1)))
            rows[2] = MemoryJournal.Row(
                head: JournalHead(mark: other, previousHash: old.previousHash, batchID: old.batchID), bytes: [])
        }
    }

    @Test func aJournalThatWasTrimmedPastTheNodeEndsIt() async throws {
        try await expectEnd(.journal(.trimmed(position: 2))) { rows in
            Self.append([], to: &rows)
            rows.removeFirst(3)
        }
    }

    @Test func anEntryOfANewerServerEndsTheNode() async throws {
        try await expectEnd(.journal(.newer(position: 3))) { Self.append([8, 2], to: &$0) }
        // An entry of a table that this server does not know.
        try await expectEnd(.journal(.newer(position: 3))) {
            Self.append([8, 1, 16, 4, 0x1A, 6, 8, 0xC8, 1, 18, 1, 1], to: &$0)
        }
    }

    @Test func anEntryThatIsNoneEndsTheNode() async throws {
        try await expectEnd(.journal(.damaged(position: 3))) { Self.append([0xFF], to: &$0) }
    }

    @Test func entriesThatDoNotFollowOneAnotherEndTheNode() async throws {
        try await expectEnd(.journal(.damaged(position: 4))) { rows in
            Self.append([], to: &rows)
            Self.append([], to: &rows)
            let head = rows[4].head
            rows[4] = MemoryJournal.Row(
                head: JournalHead(mark: head.mark, previousHash: JournalHash(.zero), batchID: head.batchID), bytes: [])
        }
    }

    /// A node that did not learn the outcome of its entry finds a row of that name, which somebody else wrote.
    /// `wasSeen`: the node had found its own row before, but could not confirm it.
    @Test(arguments: [false, true]) func aForgedRowOfItsOwnNameEndsTheNode(wasSeen: Bool) async throws {
        let forging = Forging()
        try await withJournaledNodes(1, fault: { forging.fault(at: $0) }) { cluster in
            let node = cluster.nodes[0]
            try await node.store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            forging.begin(in: cluster.rows, wasSeen: wasSeen)
            await #expect(throws: StoreError.journal(.outcomeUnknown)) {
                try await node.store.write { try $0.put(JournaledNodes.values, [1], [2]) }
            }
            await #expect(throws: StoreError.journal(.damaged(position: 3))) { try await node.store.write { _ in } }
            #expect(node.failure.error == .journal(.damaged(position: 3)))
            #expect(try node.store.read { try $0.get(JournaledNodes.values, [1]) } == [1])
        }
    }

    /// Loses the answer to the next entry, and replaces its row before the next question. The node may ask for heads
    /// in between, because it has just written.
    private final class Forging: Sendable {
        private enum State {
            case idle
            case losing(MemoryJournal.Rows, wasSeen: Bool)
            case refusing(MemoryJournal.Rows)
            case forging(MemoryJournal.Rows)
        }
        private let state = Mutex(State.idle)

        func begin(in rows: MemoryJournal.Rows, wasSeen: Bool) {
            state.withLock { $0 = .losing(rows, wasSeen: wasSeen) }
        }

        func fault(at question: MemoryJournal.Question) -> MemoryJournal.Fault? {
            state.withLock { state in
                switch state {
                case .idle: return nil
                case .losing(let rows, let wasSeen):
                    guard question == .append else { return nil }
                    state = wasSeen ? .refusing(rows) : .forging(rows)
                    return .after
                case .refusing(let rows):
                    guard question == .append else { return nil }
                    state = .forging(rows)
                    return .before
                case .forging(let rows):
                    state = .idle
                    rows.edit { rows in
                        let head = rows[3].head
                        let mark = JournalMark(position: 3, hash: JournalHash(SIMD4(9, 9, 9, 9)))
                        rows[3] = MemoryJournal.Row(
                            head: JournalHead(mark: mark, previousHash: head.previousHash, batchID: head.batchID),
                            bytes: [])
                        rows[3].isForged = true
                    }
                    return nil
                }
            }
        }
    }

    private static func append(_ bytes: [UInt8], to rows: inout [MemoryJournal.Row]) {
        guard let last = rows.last?.head.mark else { return }
        let mark = JournalMark(position: last.position + 1, hash: JournalHash(SIMD4(repeating: last.position + 1)))
        let head = JournalHead(mark: mark, previousHash: last.hash, batchID: BatchID(SIMD2(repeating: 3)))
        rows.append(MemoryJournal.Row(head: head, bytes: bytes))
    }

    /// Expects that a node at position 2 ends with this error when its journal is changed behind its back.
    private func expectEnd(_ error: StoreError, _ edit: (inout [MemoryJournal.Row]) -> Void) async throws {
        try await withJournaledNodes(1) { cluster in
            let node = cluster.nodes[0]
            // Entry 1 is the node's own, by which it confirmed that it may trust the journal.
            try await node.store.write { try $0.put(JournaledNodes.values, [1], [1]) }
            #expect(node.store.journalStatus?.position == 2)
            cluster.rows.edit(edit)
            await #expect(throws: (any Error).self) {
                for _ in 0..<3 { try await node.store.write { try $0.put(JournaledNodes.values, [1], [2]) } }
            }
            #expect(node.failure.error == error)
            #expect(throws: (any Error).self) { try node.store.writeBlocking { _ in } }
        }
    }

    @Test func aStoreAndItsJournalBelongTogether() throws {
        try withTemporaryDirectory { directory in
            let rows = MemoryJournal.Rows(beginning: JournaledNodes.beginning)
            try openTestStore(at: directory + "/a", tables: JournaledNodes.tables).close()
            #expect(throws: StoreError.journal(.notJoined)) {
                try openTestStore(at: directory + "/a", tables: JournaledNodes.tables) {
                    $0.journal = MemoryJournal(rows)
                }
            }
            try JournaledNodes.join(directory + "/b")
            #expect(throws: StoreError.journal(.journalNotNamed)) {
                try openTestStore(at: directory + "/b", tables: JournaledNodes.tables)
            }
            try openTestStore(at: directory + "/b", tables: JournaledNodes.tables) { $0.leavesJournal = true }.close()
        }
    }
}
