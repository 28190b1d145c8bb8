import Base
import Journal
import Store
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// Turns in a real PostgreSQL: docs/decisions/0140-a-node-that-is-always-outrun-asks-for-a-turn.md.
@Suite(.serialized) struct TurnTests {
    private let journal = "postern.postern_journal"

    /// Runs `body` with a node's store, and with another way into its cluster's journal.
    private func withJournal(
        silenceMax: Duration = .seconds(60),
        _ body: (LocalEngine, Store, PostgreSQLJournal) async throws -> Void
    ) async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let node = try engine.node(directory + "/0")
            defer { close(node) }
            var limits = Limits()
            limits.journal.turnSilenceMax = silenceMax
            let other = try engine.journal(limits: limits)
            other.use(clusterID: try #require(try node.journalPlace()).clusterID)
            try other.connect()
            defer { other.disconnect() }
            try await node.fill(1)
            try await body(engine, node, other)
        }
    }

    /// Appends an entry of nothing at the journal's end.
    private func append(_ id: UInt64, to journal: PostgreSQLJournal) throws -> UInt64? {
        let end = try #require(try journal.heads(from: 0, while: { true }).last).mark
        return try journal.append([], id: BatchID(SIMD2(id, id)), over: end)?.position
    }

    private func isHeld(_ engine: LocalEngine) throws -> Bool {
        try engine.number(
            "SELECT count(*) FROM pg_locks WHERE relation = '\(journal)'::regclass AND mode = 'ShareRowExclusiveLock'")
            > 0
    }

    @Test func othersWaitForTheEntryOfATurn() async throws {
        try await withJournal { engine, node, other in
            #expect(try other.beginTurn())
            let writing = Task { try await node.fill(1, from: 1) }
            try blockUntil("the other connection waits for the lock") {
                try engine.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") > 0
            }
            let position = try #require(try append(7, to: other))
            try await writing.value
            // The entry was committed, and the node's came after it.
            let name = String(repeating: "0700000000000000", count: 2)
            #expect(
                try engine.number(
                    "SELECT position FROM \(journal) WHERE batch_id = decode('\(name)', 'hex')") == Int(position))
            #expect(try engine.number("SELECT max(position) FROM \(journal)") > Int(position))
            #expect(try !isHeld(engine))
            #expect(try append(8, to: other) != nil)
        }
    }

    @Test func aTurnThatIsGivenBackHoldsNobodyUp() async throws {
        try await withJournal { engine, node, other in
            #expect(try other.beginTurn())
            #expect(try isHeld(engine))
            try other.endTurn()
            #expect(try !isHeld(engine))
            try await node.fill(1, from: 1)
            #expect(try append(7, to: other) != nil)
        }
    }

    @Test func aNodeThatKeepsSilentLosesItsTurnAndItsConnection() async throws {
        try await withJournal(silenceMax: .milliseconds(200)) { engine, node, other in
            #expect(try other.beginTurn())
            try await node.fill(1, from: 1)
            #expect(try !isHeld(engine))
            #expect(throws: JournalEngineError.self) { try append(7, to: other) }
            try other.connect()
            #expect(try append(8, to: other) != nil)
        }
    }

    /// A turn must not end an autovacuum of the journal, nor wait for one for long.
    @Test func aTurnThatIsNotToBeHadChangesNothing() async throws {
        try await withJournal { engine, node, other in
            let vacuum = try engine.connection()
            try vacuum.execute("BEGIN")
            try vacuum.execute("LOCK TABLE \(journal) IN SHARE UPDATE EXCLUSIVE MODE")
            #expect(try !other.beginTurn())
            // The connection is as before: entries need no turn.
            #expect(try append(7, to: other) != nil)
            try await node.fill(1, from: 1)
            try vacuum.execute("ROLLBACK")
            #expect(try other.beginTurn())
            #expect(try append(8, to: other) != nil)
        }
    }

    /// Without turns the far node's entries would come too late for as long as the near nodes write, also the entry by
    /// which it confirms its connection.
    @Test func aNodeFarFromTheEngineStartsAndMakesItsChange() async throws {
        let writesMax = 20_000
        try await withLocalEngine { engine, directory in
            let paths = (0..<3).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], copies: Array(paths[1...]))
            let proxy = LossyProxy(target: engine.port)
            defer { proxy.stop() }
            proxy.delay(by: 25_000)
            let near = try paths[1...].map { try open($0, try engine.journal()) }
            defer { for store in near { close(store) } }
            let progress = Progress()
            let writing = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for store in near {
                        group.addTask {
                            while let number = progress.next(below: writesMax) {
                                try await store.fill(1, from: number)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let far = try open(paths[0], try engine.journal(port: proxy.port))
            defer { close(far) }
            try await far.write { try $0.put(LocalEngine.values, [255], [1]) }
            let written = progress.end()
            try await writing.value
            #expect(written < writesMax)
            try await near[0].write { _ in }
            #expect(try near[0].read { try $0.get(LocalEngine.values, [255]) } == [1])
        }
    }

    /// How far the near nodes are.
    private final class Progress: Sendable {
        private let state = Mutex((written: 0, isOver: false))

        /// The number of the next write; nil after the end.
        func next(below bound: Int) -> Int? {
            state.withLock { state -> Int? in
                guard !state.isOver, state.written < bound else { return nil }
                state.written += 1
                return state.written
            }
        }

        /// Returns the number of writes so far.
        func end() -> Int {
            state.withLock { state -> Int in
                state.isOver = true
                return state.written
            }
        }
    }

    private func open(_ directory: String, _ journal: PostgreSQLJournal) throws -> Store {
        try openTestStore(at: directory, tables: [LocalEngine.values.declaration]) { configuration in
            configuration.journal = journal
            configuration.durability = .relaxed
            configuration.acceptsRollback = true
        }
    }
}
