import Base
import Glibc
import Messages
import TestSupport
import Testing

@testable import Cluster

/// posternd as an operator adds nodes to a cluster.
@Suite(.serialized) struct JoiningProgramTests {
    private func flags(_ data: String, _ engine: LocalEngine) -> [String] {
        [
            "--data-directory", data, "--http-address", "off", "--signing-algorithm", "ES256",
            "--journal", "postgresql://postern@127.0.0.1:\(engine.port)/postgres",
        ]
    }

    private func run(_ arguments: some Sequence<String>, log: String) throws -> (status: Int32?, output: String) {
        let child = try ChildProcess(ChildProcess.built("posternd"), Array(arguments), output: log)
        let status = child.wait(seconds: 60)
        return (status, String(decoding: readFile(log) ?? [], as: UTF8.self))
    }

    /// A directory with the cluster's master key and nothing else.
    private func prepare(_ directory: String, from source: String) throws {
        mkdir(directory, 0o700)
        try PrivateFile.create(directory + "/master-key", try #require(readFile(source + "/master-key")))
    }

    @Test func anEmptyDirectoryJoinsAndServes() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second, log) = (directory + "/1", directory + "/2", directory + "/log")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            let port = try freePort()
            let one = try NodeProcess(flags(first, engine), port: port, directory: directory)
            _ = try one.createTenant("acme", in: first)

            // Without the cluster's key, no key is made.
            let keyless = try run(flags(second, engine), log: log)
            #expect(keyless.status == 1 && keyless.output.contains("the master key is missing"), "\(keyless.output)")
            try prepare(second, from: first)
            let two = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            #expect(try two.displayName(ofTenant: "acme", in: first) == "acme")
            _ = try two.createTenant("other", in: first)
            #expect(try one.displayName(ofTenant: "other", in: first) == "other")
            try blockUntil("both are there") { try engine.number("SELECT count(*) FROM postern.postern_node") == 2 }
            // The same directory cannot be used twice.
            let twice = try run(flags(second, engine), log: log)
            #expect(twice.status == 1 && twice.output.contains("another posternd uses it"), "\(twice.output)")
            #expect(two.stop() == 0)

            // The entries that the second node lacks were trimmed: it says so, and joins again.
            _ = try one.createTenant("third", in: first)
            try engine.sql("DELETE FROM postern.postern_node; DELETE FROM postern.postern_snapshot")
            // When the first node is started again, it makes a snapshot at once.
            #expect(one.stop() == 0)
            let third = try NodeProcess(flags(first, engine), port: port, directory: directory)
            try blockUntil("a snapshot is complete") {
                try engine.number("SELECT count(*) FROM postern.postern_snapshot WHERE complete") == 1
            }
            let newest = "(SELECT max(position) FROM postern.postern_snapshot)"
            try engine.sql("DELETE FROM postern.postern_journal WHERE position < \(newest)")
            let late = try run(flags(second, engine), log: log)
            #expect(late.status == 65 && late.output.contains("--cluster-rejoin"), "\(late.output)")
            let again = try run(flags(second, engine) + ["--cluster-rejoin"], log: log)
            #expect(
                again.status == 0 && again.output.contains("0 events") && again.output.contains("before-rejoin"),
                "\(again.output)")
            let back = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            #expect(try back.displayName(ofTenant: "third", in: first) == "third")
            #expect(back.stop() == 0 && third.stop() == 0)
        }
    }

    /// Another try does not help, so a supervisor should not make one.
    @Test func aNodeWithAnotherMasterKeyJoinsNothing() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second, log) = (directory + "/1", directory + "/2", directory + "/log")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            mkdir(second, 0o700)
            let digits = [UInt8](repeating: UInt8(ascii: "a"), count: 64)
            try PrivateFile.create(second + "/master-key", digits)
            for action in [[], ["--cluster-rejoin"]] as [[String]] {
                let ended = try run(flags(second, engine) + action, log: log)
                #expect(
                    ended.status == 65 && ended.output.contains("the master key is not the cluster's"),
                    "\(ended.output)")
            }
        }
    }

    @Test func aSnapshotIsMadeWhenAnAdminAsksForIt() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second) = (directory + "/1", directory + "/2")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: directory + "/log").status == 0)
            let one = try NodeProcess(flags(first, engine), port: try freePort(), directory: directory)
            _ = try one.createTenant("acme", in: first)
            let made = try one.makeSnapshot(in: first)
            let newest = try engine.number("SELECT max(position) FROM postern.postern_snapshot WHERE complete")
            #expect(newest == Int(made.position) && newest > 0 && made.byteCount > 4_096)
            // The next node joins by this snapshot.
            try prepare(second, from: first)
            let two = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            let log = String(decoding: readFile(two.log) ?? [], as: UTF8.self)
            #expect(log.contains("\"position\":\(newest)"), "\(log)")
            #expect(try two.displayName(ofTenant: "acme", in: first) == "acme")
            #expect(two.stop() == 0 && one.stop() == 0)
        }
    }

    @Test func aNodeThatJoinsWaitsForTheEngine() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second, log) = (directory + "/1", directory + "/2", directory + "/log")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            try prepare(second, from: first)
            try engine.stop()
            let child = try ChildProcess(
                ChildProcess.built("posternd"), flags(second, engine) + ["--listen-address", "127.0.0.1:0"],
                output: log)
            func says(_ text: String) -> Bool {
                String(decoding: readFile(log) ?? [], as: UTF8.self).contains("\"message\":\"\(text)")
            }
            try blockUntil("the node waits for the engine") { says("waiting for the engine") }
            try engine.start()
            try blockUntil("the node serves") { says("serving") }
            #expect(says("joined the cluster"))
            child.send(signal: SIGTERM)
            #expect(child.wait(seconds: 30) == 0)
        }
    }

    /// The engine lost confirmed entries: the node that has them says so, and joins again.
    @Test func aForkedNodeJoinsAgainAndTellsWhatOnlyItHad() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second, log) = (directory + "/1", directory + "/2", directory + "/log")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            try prepare(second, from: first)
            let two = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            _ = try two.createTenant("kept", in: first)
            let kept = try engine.number("SELECT max(position) FROM postern.postern_journal")
            // This snapshot is of the present moment, so that the node tells exactly what was lost.
            try engine.sql("DELETE FROM postern.postern_snapshot")
            #expect(two.stop() == 0)
            let again = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            try blockUntil("a newer snapshot is complete") {
                try engine.number(
                    "SELECT count(*) FROM postern.postern_snapshot WHERE complete AND position >= \(kept)") == 1
            }
            let end = try engine.number("SELECT max(position) FROM postern.postern_journal")
            for lost: Text in ["lost", "lost-too"] { _ = try again.createTenant(lost, in: first) }
            #expect(again.stop() == 0)
            try engine.sql("DELETE FROM postern.postern_journal WHERE position > \(end)")
            let forked = try run(flags(second, engine), log: log)
            #expect(forked.status == 65 && forked.output.contains("forked"), "\(forked.output)")
            let rejoined = try run(flags(second, engine) + ["--cluster-rejoin"], log: log)
            #expect(rejoined.status == 0 && rejoined.output.contains("2 events"), "\(rejoined.output)")
            #expect(rejoined.output.contains("tenantCreated: 2"), "\(rejoined.output)")
            let back = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            #expect(try back.displayName(ofTenant: "kept", in: first) == "kept")
            #expect(throws: Failure.self) { try back.displayName(ofTenant: "lost", in: first) }
            #expect(back.stop() == 0)
        }
    }

    @Test func nodesThatShareADirectoryOfBackupsLeaveEachOthersAlone() async throws {
        try await withLocalEngine { engine, directory in
            let (first, log, backups) = (directory + "/1", directory + "/log", directory + "/backups")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            mkdir(backups, 0o700)
            let others = ["unfinished.new", "unfinished-00112233445566778899aabbccddeeff.new"]
            for name in others { try PrivateFile.create("\(backups)/\(name)", [1, 2, 3]) }
            let one = try NodeProcess(
                flags(first, engine) + ["--backup-directory", backups], port: try freePort(), directory: directory)
            try blockUntil("a backup is begun") { names(backups).contains { $0.hasPrefix("postern-000001-") } }
            _ = try one.createTenant("acme", in: first)
            #expect(one.stop() == 0)
            #expect(Set(others).isSubset(of: names(backups)) && names(backups).count == 3, "\(names(backups))")
        }
    }

    /// The journal holds what the restore is to undo.
    @Test func aRestoreOfANodeUndoesWhatTheJournalHolds() async throws {
        try await withLocalEngine { engine, directory in
            let (first, log, backups) = (directory + "/1", directory + "/log", directory + "/backups")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            mkdir(backups, 0o700)
            let one = try NodeProcess(
                flags(first, engine) + ["--backup-directory", backups], port: try freePort(), directory: directory)
            try blockUntil("a backup is complete") {
                names(backups).contains { $0.hasPrefix("postern-000001-") && !$0.hasSuffix(".new") }
            }
            _ = try one.createTenant("later", in: first)
            #expect(one.stop() == 0)
            let backup = try #require(names(backups).first { $0.hasPrefix("postern-000001-") })
            let restored = try run(flags(first, engine) + ["--restore-backup", backups + "/" + backup], log: log)
            #expect(restored.status == 0 && restored.output.contains("tenantCreated: 1"), "\(restored.output)")
            #expect(restored.output.contains("belongs to no cluster now"), "\(restored.output)")
            let alone = try NodeProcess(
                Array(flags(first, engine).dropLast(2)), port: try freePort(), directory: directory)
            #expect(throws: Failure.self) { try alone.displayName(ofTenant: "later", in: first) }
            #expect(alone.stop() == 0)
        }
    }

    private func names(_ path: String) -> [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }

    @Test func aStoreOfItsOwnIsNotReplaced() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second, log) = (directory + "/1", directory + "/2", directory + "/log")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            try prepare(second, from: first)
            let other = flags(second, engine) + ["--journal-schema", "other"]
            #expect(try run(other + ["--cluster-init"], log: log).status == 0)
            let before = try #require(readFile(second + "/data.mdb"))
            let refused = try run(flags(second, engine) + ["--cluster-rejoin"], log: log)
            #expect(refused.status == 65 && refused.output.contains("not one of this cluster"), "\(refused.output)")
            #expect(readFile(second + "/data.mdb") == before)
            #expect(access(second + "/join.new", F_OK) != 0)
        }
    }

    @Test func aNodeKilledWhileItJoinsJoinsAtTheNextStart() async throws {
        try await withLocalEngine { engine, directory in
            let (first, second, log) = (directory + "/1", directory + "/2", directory + "/log")
            #expect(try run(flags(first, engine) + ["--cluster-init"], log: log).status == 0)
            try prepare(second, from: first)
            // This lock blocks the reading of parts, which begins after the folder was made.
            let connection = try engine.connection()
            try connection.execute("BEGIN")
            try connection.execute("LOCK TABLE postern.postern_snapshot_part IN ACCESS EXCLUSIVE MODE")
            let child = try ChildProcess(
                ChildProcess.built("posternd"), flags(second, engine) + ["--listen-address", "127.0.0.1:0"],
                output: log)
            try blockUntil("the joining node has begun to write") { access(second + "/join.new/data.mdb", F_OK) == 0 }
            child.send(signal: SIGKILL)
            _ = child.wait(seconds: 30)
            try connection.execute("ROLLBACK")
            // Without the journal, posternd begins no other store in place of the interrupted joining.
            let alone = try run(flags(second, engine).dropLast(2), log: log)
            #expect(alone.status == 65 && alone.output.contains("was joining a cluster"), "\(alone.output)")
            let node = try NodeProcess(flags(second, engine), port: try freePort(), directory: directory)
            #expect(access(second + "/join.new", F_OK) != 0)
            // A server that answers calls also handles signals.
            _ = try node.createTenant("acme", in: first)
            #expect(node.stop() == 0)
        }
    }
}
