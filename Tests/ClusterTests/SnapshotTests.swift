import Base
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// The making and keeping of snapshots in a real PostgreSQL.
@Suite(.serialized) struct SnapshotTests {
    private let id = [UInt8](repeating: 1, count: 16)
    private let other = [UInt8](repeating: 2, count: 16)

    private func withNode(_ body: (LocalEngine, Store) async throws -> Void) async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let node = try engine.node(directory + "/0")
            defer { close(node) }
            try await body(engine, node)
        }
    }

    @Test func onlyOneNodeMakesASnapshotUntilItGivesUp() async throws {
        try await withNode { engine, node in
            let tables = try engine.snapshotTables()
            let mark = try #require(try node.journalPlace()).mark
            #expect(try tables.claim(id, at: mark) == .claimed)
            #expect(try tables.add([1], part: 0, isLast: false, to: id))
            #expect(try tables.claim(other, at: mark) == .taken)
            #expect(try engine.makeSnapshot(of: node) == nil)
            // A claim that was touched 59 s ago is still taken; one that was touched 61 s ago is free.
            let touched = "UPDATE postern.postern_snapshot SET touched_at = now() - interval"
            try engine.sql("\(touched) '59 seconds' WHERE NOT complete")
            #expect(try tables.claim(other, at: mark) == .taken)
            try engine.sql("\(touched) '61 seconds' WHERE NOT complete")
            #expect(try tables.claim(other, at: mark) == .claimed)
            // A maker that comes back finds its claim lost.
            #expect(try !tables.add([1], part: 1, isLast: false, to: id))
            #expect(try !tables.complete(id, parts: 1, bytes: 1, before: mark))
            try tables.give(up: other)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_snapshot_part WHERE part = 0") == 1)
            #expect(try engine.makeSnapshot(of: node) != nil)
        }
    }

    @Test func aSnapshotThatEndsEarlyLeavesNothing() async throws {
        try await withNode { engine, node in
            try await node.fill(20)
            let before = try engine.number("SELECT count(*) FROM postern.postern_snapshot_part")
            var left = 3
            let made = try engine.makeSnapshot(of: node) {
                left -= 1
                return left > 0
            }
            #expect(made == nil)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_snapshot_part") == before)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_snapshot") == 1)
        }
    }

    private let large = [UInt8](repeating: 7, count: 64 << 10)

    /// Puts rows, and deletes each at once, until there is no room for one more.
    private func useUpRoom(of store: Store) {
        do {
            for _ in 0..<10_000 {
                try store.writeBlocking { [large] in try $0.put(LocalEngine.values, [2], large) }
                try store.writeBlocking { _ = try $0.delete(LocalEngine.values, [2]) }
            }
            Issue.record("there is always room")
        } catch {
            #expect(error as? StoreError == .full)
        }
    }

    /// The copy keeps the pages of everything that is deleted while it is made.
    @Test func `A snapshot during which the store runs out of room is given up`() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let store = try openTestStore(at: directory + "/0", tables: [LocalEngine.values.declaration]) {
                $0.journal = try? engine.journal()
                $0.mapByteCount = 16 << 20
            }
            defer { close(store) }
            // More than fits between LMDB and the reader, so that the copy is not at its end.
            for number in UInt8(0)..<50 {
                try await store.write { [large] in try $0.put(LocalEngine.values, [1, number], large) }
            }
            var pieceCount = 0
            #expect(throws: SnapshotProblem.noRoom) {
                try engine.makeSnapshot(of: store) {
                    pieceCount += 1
                    if pieceCount == 3 { useUpRoom(of: store) }
                    return true
                }
            }
            #expect(pieceCount == 3)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_snapshot") == 1)
        }
    }

    @Test func aSnapshotIsCompletedAsTheOperatorHasCommitsMade() async throws {
        try await withNode { engine, node in
            try engine.sql("ALTER ROLE postern SET synchronous_commit = remote_write")
            try engine.sql(
                """
                CREATE TABLE postern.noted (setting text);
                CREATE FUNCTION postern.note() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN INSERT INTO postern.noted VALUES (current_setting(''synchronous_commit'')); RETURN NEW; END';
                CREATE TRIGGER note BEFORE UPDATE ON postern.postern_snapshot
                    FOR EACH ROW WHEN (NEW.complete) EXECUTE FUNCTION postern.note()
                """)
            #expect(try engine.makeSnapshot(of: node) != nil)
            let noted = "SELECT count(*) FROM postern.noted"
            #expect(try engine.number("\(noted)") == 1)
            #expect(try engine.number("\(noted) WHERE setting = 'remote_write'") == 1)
        }
    }

    @Test func aPartOfTheWholeCopyIsNotTheLast() async throws {
        try await withNode { engine, node in
            let made = try #require(try engine.makeSnapshot(of: node))
            var limits = LocalEngine.limits
            limits.journal.snapshotPartByteCount = Int(made.byteCount)
            let exact = try #require(try engine.makeSnapshot(of: node, limits))
            #expect(exact.partCount == 2 && exact.byteCount == made.byteCount)
            limits.journal.snapshotPartByteCount += 1
            #expect(try engine.makeSnapshot(of: node, limits)?.partCount == 1)
        }
    }

    @Test func aStoreThatForkedMakesNoSnapshot() async throws {
        try await withNode { engine, node in
            try await node.fill(3)
            let mark = try #require(try node.journalPlace()).mark
            let tables = try engine.snapshotTables()
            #expect(try tables.claim(id, at: mark) == .claimed)
            try engine.sql("UPDATE postern.postern_journal SET hash = sha256(hash) WHERE position = \(mark.position)")
            #expect(try !tables.complete(id, parts: 1, bytes: 1, before: mark))
            try tables.give(up: id)
            #expect(throws: SnapshotProblem.forked(position: mark.position)) { try engine.makeSnapshot(of: node) }
        }
    }

    @Test func theNewestSnapshotStaysAndOneThatIsReadStaysToo() async throws {
        try await withNode { engine, node in
            let tables = try engine.snapshotTables()
            let first = try #require(try tables.newest())
            try await node.fill(2)
            _ = try engine.makeSnapshot(of: node)
            let second = try #require(try tables.newest())
            #expect(first.id != second.id)
            let reader = ClusterNode(id: id, run: id, address: "", version: "")
            try engine.nodeTables().register(reader, position: first.mark.position, joining: first.id)
            try tables.deleteOld()
            #expect(try tables.exists(first.id) && tables.exists(second.id))
            try engine.sql("UPDATE postern.postern_node SET seen_at = now() - interval '61 seconds'")
            try tables.deleteOld()
            #expect(try !tables.exists(first.id) && tables.exists(second.id))
            let parts = "postern.postern_snapshot_part"
            #expect(
                try engine.number("SELECT count(*) FROM \(parts)")
                    == engine.number("SELECT parts FROM postern.postern_snapshot"))
            #expect(try tables.part(0, of: first.id) == nil)
        }
    }
}
