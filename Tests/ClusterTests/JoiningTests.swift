import Base
import Crypto
import Glibc
import Journal
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// Nodes that join a cluster by a snapshot in a real PostgreSQL.
@Suite(.serialized) struct JoiningTests {
    @Test func aNodeJoinsWhileOthersWrite() async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<4).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0])
            // The snapshot of the cluster's beginning.
            #expect(try engine.join(paths[1]).place.mark.position == 0)
            let (first, second) = (try engine.node(paths[0]), try engine.node(paths[1]))
            defer { close(first, second) }
            let (third, fourth) = try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await first.fill(200) }
                group.addTask { try await second.fill(200, from: 200) }
                try join(engine, paths[2])
                let third = try engine.node(paths[2])
                _ = try engine.makeSnapshot(of: third)
                try join(engine, paths[3])
                try await group.waitForAll()
                return (third, try engine.node(paths[3]))
            }
            defer { close(third, fourth) }
            let expected = try await first.contents()
            #expect(expected[LocalEngine.values.id]?.count == 400)
            for store in [second, third, fourth] { #expect(try await store.contents() == expected) }
        }
    }

    private func join(_ engine: LocalEngine, _ path: String) throws { try engine.join(path) }
    private func run(_ joining: Joining) throws -> Joining.Joined { try joining.run() }

    @Test func aNodeJoinsAfterTheJournalWasTrimmed() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let first = try engine.node(directory + "/0")
            defer { close(first) }
            try await first.fill(30)
            let made = try #require(try engine.makeSnapshot(of: first))
            #expect(made.position >= 30 && made.partCount > 3)
            try await first.fill(5, from: 30)
            #expect(try engine.nodeTables().trim { true }.entryCount == Int(made.position))
            #expect(try engine.number("SELECT min(position) FROM postern.postern_journal") == Int(made.position))
            let joined = try engine.join(directory + "/1")
            #expect(joined.place.mark.position == made.position && joined.byteCount == made.byteCount)
            let second = try engine.node(directory + "/1")
            defer { close(second) }
            #expect(try await second.contents() == first.contents())
            #expect(try second.epoch() == first.epoch())
        }
    }

    /// The engine's operator can make all of these alterations.
    private static let parts = "postern.postern_snapshot_part"
    private static let newest = "(SELECT id FROM postern.postern_snapshot)"
    private static let alterations: [(String, SnapshotProblem)] = [
        (
            "UPDATE \(parts) SET body = set_byte(body, 100, get_byte(body, 100) # 1) WHERE part = 2",
            .altered(part: 2)
        ),
        ("DELETE FROM \(parts) WHERE part = 1", .missing(part: 1)),
        ("DELETE FROM \(parts) WHERE is_last", .missing(part: .max)),
        ("UPDATE \(parts) SET is_last = true WHERE part = 1", .altered(part: 1)),
        (
            "DELETE FROM \(parts) WHERE is_last; UPDATE \(parts) SET is_last = true WHERE part = 2",
            .altered(part: 2)
        ),
        (
            """
            UPDATE \(parts) SET part = -1 WHERE part = 1; UPDATE \(parts) SET part = 1 WHERE part = 2;
            UPDATE \(parts) SET part = 2 WHERE part = -1
            """, .altered(part: 1)
        ),
        (
            """
            UPDATE \(parts) AS a SET body = b.body FROM \(parts) AS b WHERE a.part = 2 AND b.part = 1
            """, .altered(part: 2)
        ),
        (
            """
            UPDATE \(parts) SET body = (SELECT body FROM other.postern_snapshot_part WHERE part = 0)
            WHERE part = 0
            """,
            .altered(part: 0)
        ),
        (
            """
            DELETE FROM \(parts); INSERT INTO \(parts) SELECT \(newest), part, is_last, body
            FROM other.postern_snapshot_part
            """, .altered(part: 0)
        ),
        ("UPDATE postern.postern_snapshot SET hash = sha256(hash)", .altered(part: 0)),
        ("UPDATE postern.postern_snapshot SET position = position + 1", .altered(part: 0)),
        ("UPDATE postern.postern_snapshot SET id = substr(sha256(id), 1, 16)", .missing(part: 0)),
        ("UPDATE postern.postern_snapshot SET complete = false", .none),
        ("DELETE FROM postern.postern_snapshot", .none),
        ("DELETE FROM postern.postern_journal WHERE position < 20", .behindJournal(position: 0)),
        ("UPDATE postern.postern_journal SET hash = sha256(hash) WHERE position = 0", .forked(position: 0)),
    ]

    @Test func aSnapshotThatIsNotWholeAndGenuineIsRefusedAndNamed() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster("other", in: directory + "/other")
            for (number, (statement, problem)) in Self.alterations.enumerated() {
                try engine.sql("DROP SCHEMA IF EXISTS postern CASCADE")
                try engine.beginCluster(in: "\(directory)/\(number)", limits: LocalEngine.limits)
                if case .behindJournal = problem {
                    let node = try engine.node("\(directory)/\(number)")
                    try await node.fill(20)
                    close(node)
                }
                let count = try engine.number("SELECT count(*) FROM postern.postern_snapshot_part")
                try engine.sql(statement)
                let path = "\(directory)/\(number)new"
                let expected = problem == .missing(part: .max) ? .missing(part: UInt64(count - 1)) : problem
                #expect(throws: expected, "\(statement)") { try engine.join(path) }
                #expect(access(path + "/data.mdb", F_OK) != 0 && !Joining.isInterrupted(in: path))
                #expect(try engine.number("SELECT count(*) FROM postern.postern_node") == 0)
            }
        }
    }

    @Test func anotherKeyOrDirectoryIsRefused() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            #expect {
                try engine.joining(directory + "/1", masterKey: .generate(random: .system)).run()
            } throws: {
                guard case .unusable(let reason)? = $0 as? JournalEngineError else { return false }
                return reason == "the master key is not the cluster's"
            }
            #expect(throws: ClusterProblem.self) { try engine.joining(directory + "/1", "none").run() }
            #expect(throws: ClusterProblem.self) { try engine.join(directory + "/0") }
            // The directory's id is drawn only once.
            let id = ClusterNode.id(of: directory + "/1")
            #expect(id?.count == 16)
            try engine.join(directory + "/1")
            #expect(ClusterNode.id(of: directory + "/1") == id)
            let registered = try engine.connection().execute("SELECT id FROM postern.postern_node")
            #expect(registered.rowCount == 1 && registered.bytes(0, 0).map { [UInt8]($0) } == id)
        }
    }

    @Test func anEngineThatIsLostAgainAndAgainIsAskedAgain() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let first = try engine.node(directory + "/0")
            defer { close(first) }
            try await first.fill(60)
            _ = try engine.makeSnapshot(of: first)
            let proxy = LossyProxy(target: engine.port)
            defer { proxy.stop() }
            let joining = try engine.joining(directory + "/1", port: proxy.port)
            proxy.loseOne(of: 20)
            let joined = try run(joining)
            #expect(joined.byteCount > 20_000 && joined.kept == nil)
            let second = try engine.node(directory + "/1")
            defer { close(second) }
            #expect(try await first.contents() == second.contents())
            // A joining fails if the engine stays away.
            var limits = LocalEngine.limits
            limits.journal.joiningPatience = .milliseconds(300)
            let late = try engine.joining(directory + "/2", port: proxy.port, limits)
            proxy.loseOne(of: 1, first: 22)
            #expect(throws: JournalEngineError.self) { try run(late) }
            #expect(access(directory + "/2/data.mdb", F_OK) != 0 && !Joining.isInterrupted(in: directory + "/2"))
        }
    }

    @Test func aSnapshotThatIsReplacedAgainAndAgainIsGivenUp() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let triesMax = LocalEngine.limits.journal.joiningTriesMax
            func join(_ path: String, replaced count: Int) throws -> Int {
                var tryCount = 0
                do {
                    _ = try engine.joining(path).run { _ in
                        tryCount += 1
                        if tryCount <= count { throw SnapshotProblem.replaced }
                    }
                } catch SnapshotProblem.replaced {
                    return -tryCount
                }
                return tryCount
            }
            #expect(try join(directory + "/1", replaced: triesMax) == -triesMax)
            #expect(access(directory + "/1/data.mdb", F_OK) != 0 && !Joining.isInterrupted(in: directory + "/1"))
            #expect(try engine.number("SELECT count(*) FROM postern.postern_node") == 0)
            #expect(try join(directory + "/1", replaced: triesMax - 1) == triesMax)
            close(try engine.node(directory + "/1"))
        }
    }

    /// The files that a joining leaves on the disk when it ends between two of its steps.
    @Test func aJoiningThatWasInterruptedBeginsAgain() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let source = directory + "/source"
            try engine.join(source)
            let witness = try PlainFile.read(source + "/witness")
            let states: [(inFolder: [String], inDirectory: [String])] = [
                ([], []), (["data.mdb"], []), (["data.mdb", "lock.mdb", "lock", "witness"], []),
                (["data.mdb"], ["witness"]),
            ]
            for (number, state) in states.enumerated() {
                let path = "\(directory)/interrupted\(number)"
                mkdir(path, 0o700)
                mkdir(path + "/join.new", 0o700)
                for name in state.inFolder { try PrivateFile.create("\(path)/join.new/\(name)", [1, 2, 3]) }
                for name in state.inDirectory { try PrivateFile.create("\(path)/\(name)", witness) }
                #expect(Joining.isInterrupted(in: path))
                try engine.join(path)
                #expect(!Joining.isInterrupted(in: path))
                close(try engine.node(path))
            }
            // A joining that ended after its last step is complete; only its folder is left.
            mkdir(source + "/join.new", 0o700)
            Joining.clear(source)
            #expect(!Joining.isInterrupted(in: source))
            close(try engine.node(source))
        }
    }

    @Test func aNodeThatJoinsAgainKeepsWhatItHad() async throws {
        try await withLocalEngine { engine, directory in
            let paths = (0..<2).map { "\(directory)/\($0)" }
            try engine.beginCluster(in: paths[0], limits: LocalEngine.limits)
            try engine.join(paths[1])
            let first = try engine.node(paths[0])
            defer { close(first) }
            try await first.fill(4)
            // The engine loses entries that it had confirmed and that the second node has.
            let second = try engine.node(paths[1])
            _ = try await second.contents()
            close(second)
            let before = try PlainFile.read(paths[1] + "/data.mdb")
            try engine.sql("DELETE FROM postern.postern_journal WHERE position > 1")
            let ended = LocalEngine.Ended()
            #expect(throws: StoreError.self) { try engine.node(paths[1], ended) }
            guard case .journal(.forked) = ended.error.withLock({ $0 }) else {
                Issue.record("\(String(describing: ended.error.withLock { $0 }))")
                return
            }
            #expect(throws: ClusterProblem.self) { try engine.join(paths[1]) }
            let kept = try #require(try engine.join(paths[1], replacing: true).kept)
            #expect(try PlainFile.read(kept).count == before.count)
            let again = try engine.node(paths[1])
            defer { close(again) }
            #expect(try await again.contents()[LocalEngine.values.id]?.count ?? 0 <= 1)
        }
    }
}

enum PlainFile {
    static func read(_ path: String) throws -> [UInt8] {
        let file = open(path, O_RDONLY)
        guard file >= 0 else { throw FileError(path: path, call: "open", code: errno) }
        defer { close(file) }
        return try OpenFile.readAll(file, path: path, byteCountMax: 64 << 20)
    }
}
