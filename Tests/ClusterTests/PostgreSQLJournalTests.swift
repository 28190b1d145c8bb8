import Base
import Crypto
import Journal
import Store
import Synchronization
import TestSupport
import Testing

@testable import Cluster

/// Stores over a journal in a real PostgreSQL.
@Suite(.serialized) struct PostgreSQLJournalTests {
    private static let values = LocalEngine.values

    private final class Ended: Sendable {
        let error = Mutex<StoreError?>(nil)
    }

    private func open(
        _ directory: String, _ journal: PostgreSQLJournal, _ ended: Ended = Ended()
    ) throws -> Store {
        try openTestStore(
            at: directory, tables: [Self.values.declaration],
            { configuration in
                configuration.journal = journal
                configuration.durability = .relaxed
                configuration.acceptsRollback = true
            }, onFatal: { error in ended.error.withLock { $0 = error } })
    }

    private func close(_ stores: [Store]) { for store in stores { store.close() } }

    private func add(_ count: Int, to store: Store) async throws {
        for _ in 0..<count {
            try await store.write { transaction in
                let old = try transaction.get(Self.values, [0]) ?? [0, 0]
                let sum = Int(old[0]) * 256 + Int(old[1]) + 1
                try transaction.put(Self.values, [0], [UInt8(sum / 256), UInt8(sum % 256)])
            }
        }
    }

    private func sum(_ store: Store) async throws -> Int {
        try await store.write { _ in }
        let bytes = try store.read { try $0.get(Self.values, [0]) } ?? [0, 0]
        return Int(bytes[0]) * 256 + Int(bytes[1])
    }

    @Test func threeStoresTakeTurns() async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<3).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], copies: Array(paths[1...]))
            let stores = try paths.map { try open($0, try engine.journal()) }
            defer { close(stores) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for store in stores { group.addTask { try await add(50, to: store) } }
                try await group.waitForAll()
            }
            for store in stores { #expect(try await sum(store) == 150) }
            // A body that is too large to come with its head is read by itself.
            try await stores[0].write {
                try $0.put(Self.values, [1], [UInt8](repeating: 5, count: 300_000))
            }
            try await stores[1].write { _ in }
            #expect(try stores[1].read { try $0.get(Self.values, [1])?.count } == 300_000)
        }
    }

    @Test func anOutcomeThatGotLostIsFoundOut() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let proxy = LossyProxy(target: engine.port)
            defer { proxy.stop() }
            let store = try open(directory + "/0", try engine.journal(port: proxy.port))
            defer { close([store]) }
            for round in 1...10 {
                proxy.lose(round % 2 == 0 ? .answer : .question)
                try await add(1, to: store)
                #expect(try await sum(store) == round)
            }
        }
    }

    /// Without this, each write of the node would wait for ten seconds behind the question.
    @Test func aConnectionThatFallsSilentIsReplaced() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0", copies: [directory + "/1"])
            let proxy = LossyProxy(target: engine.port)
            defer { proxy.stop() }
            let stores = [
                try open(directory + "/0", try engine.journal(port: proxy.port)),
                try open(directory + "/1", try engine.journal()),
            ]
            defer { close(stores) }
            try await add(1, to: stores[0])
            proxy.fallSilent()
            // A change of the other node, which the first one has to see before it answers.
            try await add(1, to: stores[1])
            let began = Instant.now
            #expect(try await sum(stores[0]) == 2)
            let duration = Duration.nanoseconds(Instant.now.nanoseconds(since: began))
            #expect(duration < .seconds(7), "\(duration)")
        }
    }

    @Test func aSlowEngineIsWaitedForAfterAQuestionOrTwo() {
        var limits = JournalLimits()
        (limits.readSilenceMin, limits.answerTimeout) = (.seconds(2), .seconds(10))
        var patience = ReadPatience(limits)
        #expect(patience.silenceMax == .seconds(2))
        for (ended, next) in [(2, 4), (4, 8), (8, 10), (10, 10), (3, 6), (1, 2), (0, 2)] {
            patience.ended(after: .seconds(ended))
            #expect(patience.silenceMax == .seconds(next))
        }
        limits.answerTimeout = .seconds(1)
        #expect(ReadPatience(limits).silenceMax == .seconds(1))
    }

    @Test func anEngineThatCrashedIsUsedAgain() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            var limits = Limits()
            limits.journal.patience = .milliseconds(300)
            let store = try openTestStore(at: directory + "/0", tables: [Self.values.declaration]) { configuration in
                configuration.journal = try? engine.journal(limits: limits)
                configuration.durability = .relaxed
                configuration.limits = limits
            }
            defer { close([store]) }
            try await add(3, to: store)
            try engine.kill()
            await #expect(throws: StoreError.self) { try await add(1, to: store) }
            await #expect(throws: StoreError.journal(.away)) { try await add(1, to: store) }
            #expect(store.journalStatus?.isConnected == false)
            try engine.start()
            try await until("the node writes again") { (try? await store.write { _ in }) != nil }
            // The first of the two changes was on its way or was not: nobody was told that it was refused.
            let found = try await sum(store)
            #expect([3, 4].contains(found))
            try await add(1, to: store)
            #expect(try await sum(store) == found + 1)
        }
    }

    @Test func whoeverAltersTheJournalStopsItsNodes() async throws {
        let table = "postern.postern_journal"
        let alterations: [(String, StoreError)] = [
            (
                "UPDATE \(table) SET body = set_byte(body, 40, get_byte(body, 40) # 1) WHERE position = 5",
                .journal(.damaged(position: 5))
            ),
            ("DELETE FROM \(table) WHERE position = 5", .journal(.damaged(position: 6))),
            ("UPDATE \(table) SET hash = sha256(hash) WHERE position = 3", .journal(.forked(position: 3))),
            ("DELETE FROM \(table) WHERE position >= 3", .journal(.forked(position: 3))),
            ("DELETE FROM \(table) WHERE position <= 4", .journal(.trimmed(position: 3))),
        ]
        try await withLocalEngine { engine, directory in
            for (number, (statement, error)) in alterations.enumerated() {
                try engine.sql("DROP SCHEMA IF EXISTS postern CASCADE")
                let paths = ["\(directory)/\(number)a", "\(directory)/\(number)b"]
                try engine.beginCluster(in: paths[0], copies: [paths[1]])
                let ended = Ended()
                // Entry 1 of the first node and entry 2 of the second tell that the journal may be believed.
                let first = try open(paths[0], try engine.journal())
                try await first.write { _ in }
                let second = try open(paths[1], try engine.journal(), ended)
                try await add(1, to: second)
                close([second])
                try await add(4, to: first)
                close([first])
                try engine.sql(statement)
                #expect(throws: StoreError.self, "\(statement)") { try open(paths[1], try engine.journal(), ended) }
                #expect(ended.error.withLock { $0 } == error, "\(statement)")
            }
        }
    }

    @Test func aNodeThatIsTooFarBehindHasToJoinAgain() async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<3).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], copies: Array(paths[1...]))
            let first = try open(paths[0], try engine.journal())
            defer { close([first]) }
            try await add(5, to: first)
            var limits = Limits()
            // A node appends an entry of its own before it applies others.
            let behind = Int(try #require(first.journalStatus).position) + 1
            limits.journal.headsMax = behind
            close([try open(paths[1], try engine.journal(limits: limits))])
            limits.journal.headsMax = behind - 1
            let ended = Ended()
            #expect(throws: StoreError.self) { try open(paths[2], try engine.journal(limits: limits), ended) }
            #expect(ended.error.withLock { $0 } == .journal(.trimmed(position: 0)))
        }
    }

    /// Each of these nodes needs several questions for the heads of what it lacks, and the last one may be just full.
    @Test func aNodeFarBehindAsksBitByBit() async throws {
        try await withLocalEngine { engine, directory in
            let sizes = [2, 3, 4, 7]
            let paths = (0...sizes.count).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], copies: Array(paths[1...]))
            let first = try open(paths[0], try engine.journal())
            defer { close([first]) }
            try await add(9, to: first)
            for (path, size) in zip(paths[1...], sizes) {
                var limits = Limits()
                limits.journal.headsAtOnceMax = size
                let store = try open(path, try engine.journal(limits: limits))
                defer { close([store]) }
                let found = try await sum(store)
                #expect(found == 9, "\(size) at once")
            }
        }
    }

    @Test func anEngineOfAnotherClusterOrKeyIsRefused() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster("one", in: directory + "/1")
            try engine.beginCluster("two", in: directory + "/2")
            let other = try LocalEngine.stranger(to: engine)
            for journal in [try engine.journal("two"), try engine.journal("none"), other] {
                let ended = Ended()
                #expect(throws: StoreError.self) { try open(directory + "/1", journal, ended) }
                guard case .journal(.unusable) = ended.error.withLock({ $0 }) else {
                    Issue.record("\(String(describing: ended.error.withLock { $0 }))")
                    continue
                }
            }
            #expect(throws: ClusterProblem.self) { try engine.beginCluster("one", in: directory + "/3") }
            #expect(throws: ClusterProblem.self) {
                let store = try openTestStore(at: directory + "/1", tables: [Self.values.declaration]) {
                    $0.leavesJournal = true
                }
                defer { store.close() }
                try ClusterMembership.begin(
                    with: store, at: try engine.address("three"), masterKey: engine.masterKey, random: .system,
                    limits: Limits())
            }
        }
    }

    @Test func aStoreThatLeftKeepsWhatItHasAndNeedsNoJournal() async throws {
        try await withLocalEngine { engine, directory in
            let path = directory + "/0"
            try engine.beginCluster(in: path)
            let node = try open(path, try engine.journal())
            try await add(3, to: node)
            close([node])
            let leaving = try openTestStore(at: path, tables: [Self.values.declaration]) { $0.leavesJournal = true }
            try leave(leaving)
            close([leaving])
            let alone = try openTestStore(at: path, tables: [Self.values.declaration])
            defer { close([alone]) }
            #expect(try alone.journalPlace() == nil && alone.journalStatus == nil)
            #expect(try await sum(alone) == 3)
        }
    }

    private func leave(_ store: Store) throws { try ClusterMembership.leave(store) }

    @Test func anEngineThatForgetsIsRefused() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            try engine.sql("ALTER SYSTEM SET fsync = off")
            try engine.stop()
            try engine.start()
            let ended = Ended()
            #expect(throws: StoreError.self) { try open(directory + "/0", try engine.journal(), ended) }
            #expect("\(String(describing: ended.error.withLock { $0 }))".contains("fsync=off"))
        }
    }
}
