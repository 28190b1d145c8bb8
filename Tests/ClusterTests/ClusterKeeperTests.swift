import Base
import Crypto
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// Registering and trimming over a real PostgreSQL.
@Suite(.serialized) struct ClusterKeeperTests {
    private static let journal = "postern.postern_journal"

    private func unregister(_ id: [UInt8], of clusterID: [UInt8], _ engine: LocalEngine) throws {
        try ClusterMembership.unregister(
            id, of: clusterID, at: try engine.address(), masterKey: engine.masterKey, limits: Limits())
    }

    private func makeSnapshot(_ keeper: ClusterKeeper) throws -> MadeSnapshot? { try keeper.makeSnapshot() }

    private func stop(_ keepers: ClusterKeeper...) { for keeper in keepers { keeper.stop() } }

    @Test func aNodeRegistersMakesSnapshotsAndTrims() async throws {
        try await withLocalEngine { engine, directory in
            let path = directory + "/0"
            try engine.beginCluster(in: path)
            let store = try engine.node(path)
            defer { close(store) }
            // The limit of 20 is the entry of the connection and 19 more.
            let keeper = try engine.keeper(store, path) { $0.entriesBetweenSnapshots = 20 }
            defer { stop(keeper) }
            try await store.fill(18)
            try blockUntil("the node's place is told") {
                try engine.number("SELECT position FROM postern.postern_node") >= 17
            }
            #expect(try engine.number("SELECT max(position) FROM postern.postern_snapshot WHERE complete") == 0)
            try await store.fill(1, from: 18)
            try blockUntil("a snapshot is complete") {
                try engine.number("SELECT max(position) FROM postern.postern_snapshot WHERE complete") >= 20
            }
            try blockUntil("the old entries are deleted") {
                try engine.number("SELECT min(position) FROM \(Self.journal)") >= 19
            }
            #expect(try engine.number("SELECT count(*) FROM postern.postern_snapshot") == 1)
            // A snapshot is made on demand, too.
            try await store.fill(2, from: 19)
            let made = try #require(try makeSnapshot(keeper))
            #expect(made.position >= 22)
            #expect(
                try engine.number("SELECT max(position) FROM postern.postern_snapshot WHERE complete")
                    == Int(made.position))
            // No snapshot is made beside another one, and none at the stop.
            try engine.sql("INSERT INTO postern.postern_snapshot (id, position, hash) VALUES ('\\x00', 0, '\\x00')")
            #expect(try makeSnapshot(keeper) == nil)
            try engine.sql("DELETE FROM postern.postern_snapshot WHERE NOT complete")
            // The keeper makes a snapshot where there is none.
            try engine.sql("DELETE FROM postern.postern_snapshot")
            try blockUntil("a snapshot is complete") {
                try engine.number("SELECT count(*) FROM postern.postern_snapshot WHERE complete") == 1
            }
        }
    }

    @Test func bytesMakeASnapshotDueAsWell() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let store = try engine.node(directory + "/0")
            defer { close(store) }
            try await store.fill(10)
            let (tables, bytes) = (
                try engine.snapshotTables(),
                try engine.number("SELECT sum(octet_length(body)) FROM \(Self.journal)")
            )
            var limits = LocalEngine.limits.journal
            limits.byteCountBetweenSnapshots = bytes + 1
            var growth = JournalGrowth()
            #expect(try !growth.isSnapshotDue(tables, limits))
            #expect(try !growth.isSnapshotDue(tables, limits))
            limits.byteCountBetweenSnapshots = bytes
            #expect(try growth.isSnapshotDue(tables, limits))
            try engine.sql("DELETE FROM postern.postern_snapshot")
            #expect(try growth.isSnapshotDue(tables, LocalEngine.limits.journal))
        }
    }

    /// Entries 0 to 20, a snapshot at 15, and a node that has 5 of them.
    private func withLaggard(
        _ body: (LocalEngine, _ laggard: ClusterNode, _ path: String) async throws -> Void
    ) async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<2).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0])
            try engine.join(paths[1])
            let store = try engine.node(paths[0])
            defer { close(store) }
            try await store.fill(14)
            _ = try engine.makeSnapshot(of: store)
            try await store.fill(5, from: 14)
            try await body(
                engine, try ClusterNode(of: paths[1], address: "", version: "", random: .system), paths[1])
        }
    }

    private func oldest(_ engine: LocalEngine) throws -> Int {
        try engine.number("SELECT min(position) FROM \(Self.journal)")
    }

    @Test func whatAnAbsentNodeNeedsIsKeptForADay() async throws {
        try await withLaggard { engine, laggard, path in
            let nodes = try engine.nodeTables()
            try nodes.register(laggard, position: 5)
            try engine.sql("UPDATE postern.postern_node SET seen_at = now() - interval '23 hours 59 minutes'")
            #expect(try nodes.trim { true }.entryCount == 5)
            #expect(try oldest(engine) == 5)
            try engine.sql("UPDATE postern.postern_node SET seen_at = now() - interval '24 hours 1 minute'")
            let trimmed = try nodes.trim { true }
            #expect(trimmed.dropped == [laggard.id] && trimmed.entryCount == 10)
            #expect(try oldest(engine) == 15)
            // The node comes back: it is told to join again, and does.
            let ended = LocalEngine.Ended()
            #expect(throws: StoreError.self) { try engine.node(path, ended) }
            #expect(ended.error.withLock { $0 } == .journal(.trimmed(position: 0)))
            try engine.join(path, replacing: true)
            close(try engine.node(path))
        }
    }

    @Test func anAbsentNodeHoldsBackSoManyBytesAndEntriesOnly() async throws {
        try await withLaggard { engine, laggard, _ in
            var limits = LocalEngine.limits
            let held = try engine.number(
                "SELECT sum(octet_length(body)) FROM \(Self.journal) WHERE position BETWEEN 5 AND 14")
            limits.journal.heldBackByteCountMax = held
            limits.journal.headsMax = 15
            try engine.nodeTables().register(laggard, position: 5)
            #expect(try engine.nodeTables(limits).trim { true }.dropped.isEmpty)
            #expect(try oldest(engine) == 5)
            limits.journal.heldBackByteCountMax = held - 1
            #expect(try engine.nodeTables(limits).trim { true }.dropped == [laggard.id])
            #expect(try oldest(engine) == 15)
            // The node is as many entries behind as it may be, and then one more.
            limits.journal.heldBackByteCountMax = held
            try engine.nodeTables().register(laggard, position: 5)
            #expect(try engine.nodeTables(limits).trim { true }.dropped.isEmpty)
            limits.journal.headsMax = 14
            #expect(try engine.nodeTables(limits).trim { true }.dropped == [laggard.id])
        }
    }

    @Test func `A node that holds back little is kept when another one holds back too much`() async throws {
        try await withLaggard { engine, laggard, _ in
            var limits = LocalEngine.limits
            let held = try engine.number(
                "SELECT sum(octet_length(body)) FROM \(Self.journal) WHERE position BETWEEN 5 AND 14")
            limits.journal.heldBackByteCountMax = held - 1
            let id = [UInt8](repeating: 7, count: ClusterNode.idByteCount)
            let near = ClusterNode(id: id, run: id, address: "", version: "")
            try engine.nodeTables().register(laggard, position: 5)
            // This node has not registered again since the newest snapshot.
            try engine.nodeTables().register(near, position: 14)
            #expect(try engine.nodeTables(limits).trim { true }.dropped == [laggard.id])
            #expect(try oldest(engine) == 14)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_node") == 1)
        }
    }

    @Test func trimmingGoesInBoundedStepsAndEndsWithTheServer() async throws {
        try await withLaggard { engine, _, _ in
            try engine.sql("DELETE FROM postern.postern_node")
            var limits = LocalEngine.limits
            limits.journal.trimmedAtOnceMax = 4
            var turns = 2
            let trimmed = try engine.nodeTables(limits).trim {
                turns -= 1
                return turns >= 0
            }
            #expect(trimmed.entryCount == 8)
            // The seven entries that are left are one whole step at the limit; the next look finds nothing.
            limits.journal.trimmedAtOnceMax = 7
            #expect(try engine.nodeTables(limits).trim { true }.entryCount == 7)
            #expect(try oldest(engine) == 15)
            // Without a snapshot nothing is trimmed.
            try engine.sql("DELETE FROM postern.postern_snapshot")
            #expect(try engine.nodeTables(limits).trim { true }.entryCount == 0)
        }
    }

    @Test func twoProcessesOfOneCopiedDirectoryBecomeTwoNodes() async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<2).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0])
            try engine.join(paths[1])
            // Both directories have the same id, as a copy of a directory would.
            let id = try #require(ClusterNode.id(of: paths[1]))
            try PrivateFile.replace(paths[0] + "/node-id", with: [UInt8]("\(Hex.encode(id))\n".utf8))
            let stores = try paths.map { try engine.node($0) }
            defer { close(stores[0], stores[1]) }
            let keepers = try (0..<2).map { try engine.keeper(stores[$0], paths[$0]) { _ in } }
            defer { stop(keepers[0], keepers[1]) }
            try blockUntil("one of the two has another id") {
                ClusterNode.id(of: paths[0]) != ClusterNode.id(of: paths[1])
            }
            try blockUntil("both nodes are alive") {
                let alive = "seen_at > now() - interval '2 seconds'"
                return try engine.number("SELECT count(*) FROM postern.postern_node WHERE \(alive)") >= 2
            }
        }
    }

    @Test func anEngineThatIsAwayIsWaitedFor() async throws {
        try await withLocalEngine { engine, directory in
            let path = directory + "/0"
            try engine.beginCluster(in: path)
            let store = try engine.node(path)
            defer { close(store) }
            let keeper = try engine.keeper(store, path) { _ in }
            defer { stop(keeper) }
            try blockUntil("the node is known") { try engine.number("SELECT count(*) FROM postern.postern_node") == 1 }
            try engine.kill()
            try engine.start()
            try engine.sql("DELETE FROM postern.postern_node")
            try blockUntil("the node is known again") {
                try engine.number("SELECT count(*) FROM postern.postern_node") == 1
            }
            // Leaving takes the row away.
            stop(keeper)
            let place = try #require(try store.journalPlace())
            try unregister(try #require(ClusterNode.id(of: path)), of: place.clusterID, engine)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_node") == 0)
        }
    }
}
