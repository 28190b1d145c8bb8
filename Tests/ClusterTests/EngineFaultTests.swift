import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Testing

/// What a full, read-only or slow engine, and one that fails over, do to a cluster's nodes: docs/cluster.md.
@Suite(.serialized) struct EngineFaultTests {
    private let fullDisk = """
        CREATE FUNCTION postern.fault() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION ''could not extend file: No space left on device'' USING ERRCODE = ''53100''; END';
        CREATE TRIGGER fault BEFORE INSERT ON postern.postern_journal FOR EACH ROW EXECUTE FUNCTION postern.fault()
        """
    private let slowCommit = """
        CREATE FUNCTION postern.fault() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(2); RETURN NEW; END';
        CREATE TRIGGER fault BEFORE INSERT ON postern.postern_journal FOR EACH ROW EXECUTE FUNCTION postern.fault()
        """
    private let healed = "DROP FUNCTION postern.fault() CASCADE"

    @Test func aFullEngineTakesNoChangesAndLosesNone() async throws {
        try await withTwoNodes { nodes, engine in
            #expect(try nodes.create("before"))
            try engine.sql(fullDisk)
            // The full engine takes connections, so a lost connection is no sign of the fault.
            for number in 0..<4 { #expect(try !nodes.create(Text("full-\(number)"))) }
            #expect(!nodes.reasons.contains("DEADLINE_EXCEEDED") && nodes.refused.count > 1, "\(nodes.reasons)")
            #expect(try nodes.two.displayName(ofTenant: "before", in: nodes.data) == "before")
            try engine.sql(healed)
            try nodes.expectNothingLost()
        }
    }

    @Test func aReadOnlyEngineTakesNoChangesAndLosesNone() async throws {
        try await withTwoNodes { nodes, engine in
            #expect(try nodes.create("before"))
            try engine.sql("ALTER SYSTEM SET default_transaction_read_only = on")
            try engine.sql("SELECT pg_reload_conf()")
            for id: Text in ["read-only-1", "read-only-2"] { #expect(try !nodes.create(id)) }
            #expect(try nodes.two.displayName(ofTenant: "before", in: nodes.data) == "before")
            try blockUntil("the node says that its engine takes no writes") {
                try get("/healthz", nodes.httpPort).contains("DEGRADED: the engine of the journal")
            }
            try engine.sql("ALTER SYSTEM RESET default_transaction_read_only")
            try engine.sql("SELECT pg_reload_conf()")
            try nodes.expectNothingLost()
        }
    }

    @Test func aSlowEngineIsWaitedFor() async throws {
        try await withTwoNodes { nodes, engine in
            try engine.sql(slowCommit)
            #expect(try nodes.create("slow-1") && nodes.create("slow-2"))
            #expect(try nodes.two.displayName(ofTenant: "slow-1", in: nodes.data) == "slow-1")
            #expect(try get("/healthz", nodes.httpPort).hasSuffix("\r\nSERVING\n"))
            try engine.sql(healed)
            try nodes.expectNothingLost()
        }
    }

    @Test func aSynchronousStandbyTakesOverWithAllThatWasAcknowledged() async throws {
        try await withTwoNodes(hasStandby: true) { nodes, engine in
            let standby = try #require(nodes.standby)
            try waitForStandby(engine)
            for number in 0..<10 { #expect(try nodes.create(Text("before-\(number)"))) }
            try engine.kill()
            #expect(try !nodes.create("between"))
            #expect(try nodes.two.displayName(ofTenant: "before-9", in: nodes.data) == "before-9")
            // The promoted standby must not wait for a standby of its own.
            try standby.promote()
            try standby.sql("ALTER SYSTEM RESET synchronous_standby_names")
            try standby.sql("SELECT pg_reload_conf()")
            try nodes.expectNothingLost()
            try engine.start()
        }
    }

    /// The commits of the engine wait for its standby from now on.
    private func waitForStandby(_ engine: LocalEngine) throws {
        try engine.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        try engine.sql("SELECT pg_reload_conf()")
        try blockUntil("the standby is synchronous") {
            try engine.number("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
        }
    }

    @Test func aStandbyThatIsAwayStopsChangesAndNoReads() async throws {
        try await withTwoNodes(hasStandby: true) { nodes, engine in
            let standby = try #require(nodes.standby)
            try waitForStandby(engine)
            #expect(try nodes.create("before"))
            try standby.stop()
            // The call's deadline is five seconds.
            #expect(try !nodes.create("waits"))
            // By now the engine has answered nothing for longer than a node may be behind an engine that answers.
            sleep(3)
            #expect(try !get("/healthz", nodes.httpPort).contains("NOT_SERVING"))
            #expect(try nodes.two.displayName(ofTenant: "before", in: nodes.data) == "before")
            try standby.start()
            try nodes.expectNothingLost()
        }
    }

    /// PostgreSQL commits on the primary alone then, and answers as usual, with a warning.
    @Test func aWaitForTheStandbyThatSomebodyCancelsAcknowledgesNothing() async throws {
        try await withTwoNodes(hasStandby: true) { nodes, engine in
            let standby = try #require(nodes.standby)
            try waitForStandby(engine)
            #expect(try nodes.create("before"))
            try standby.stop()
            let cancelling = CancelledWait()
            let thread = OSThread(name: "cancel") { cancelling.run(engine, standby) }
            let created = Result { try nodes.create("cancelled") }
            let wasStandbyBack = cancelling.isStandbyBack.load(ordering: .sequentiallyConsistent)
            thread.join()
            #expect(cancelling.trouble.withLock { $0 } == nil)
            let isAcknowledged = try created.get()
            #expect(!isAcknowledged || wasStandbyBack)
            try nodes.expectNothingLost()
        }
    }

    @Test func aStandbyThatLostWhatWasAcknowledgedEndsTheNodesThatHaveIt() async throws {
        try await withTwoNodes(hasStandby: true) { nodes, engine in
            let standby = try #require(nodes.standby)
            #expect(try nodes.create("before"))
            let position = try engine.number("SELECT max(position) FROM postern.postern_journal")
            try blockUntil("the standby has the entry") {
                try standby.number("SELECT max(position) FROM postern.postern_journal", readOnly: true) >= position
            }
            try standby.stop()
            #expect(try nodes.create("lost"))
            #expect(try nodes.two.displayName(ofTenant: "lost", in: nodes.data) == "lost")
            try engine.kill()
            try standby.start()
            try standby.promote()
            #expect(nodes.one.wait() == 65 && nodes.two.wait() == 65)
            try engine.start()
            for log in [nodes.one.log, nodes.two.log] {
                #expect(String(decoding: readFile(log) ?? [], as: UTF8.self).contains("forked"))
            }
        }
    }

    private func withTwoNodes(
        hasStandby: Bool = false, _ body: (FaultedNodes, LocalEngine) async throws -> Void
    ) async throws {
        try await withLocalEngine { engine, directory in
            let nodes = try FaultedNodes(engine, directory, hasStandby: hasStandby)
            defer { nodes.stop() }
            try await body(nodes, engine)
        }
    }
}

/// Cancels an entry's wait for the standby, and starts the standby again when the node asks for another confirmation.
private final class CancelledWait: Sendable {
    let isStandbyBack = Atomic(false)
    let trouble = Mutex<String?>(nil)

    func run(_ engine: LocalEngine, _ standby: LocalEngine) {
        // The beginning of the statement that appends.
        let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'WITH appended%'"
        do {
            var id = 0
            try blockUntil("a commit waits for the standby") {
                id = try engine.number("SELECT coalesce(min(pid), 0) \(waiting)")
                return id > 0
            }
            try engine.sql("SELECT pg_cancel_backend(\(id))")
            // Over a new connection, the node appends an entry of nothing before it believes the row.
            try blockUntil("another commit waits for the standby") {
                try engine.number("SELECT count(*) \(waiting) AND pid <> \(id)") > 0
            }
            isStandbyBack.store(true, ordering: .sequentiallyConsistent)
            try standby.start()
        } catch {
            trouble.withLock { $0 = "\(error)" }
        }
    }
}

/// Two nodes, their engine's standby, and the outcomes of the changes that were asked for.
private final class FaultedNodes {
    let one: NodeProcess
    let two: NodeProcess
    let standby: LocalEngine?
    let httpPort: UInt16
    let data: String
    private var acknowledged: [Text] = []
    private(set) var refused: [Text] = []
    private(set) var reasons: [String] = []

    init(_ engine: LocalEngine, _ directory: String, hasStandby: Bool) throws {
        let (first, second) = (directory + "/1", directory + "/2")
        (data, httpPort) = (first, try freePort())
        // The standby is made now, because the nodes are told its port.
        standby = hasStandby ? try LocalEngine(folder: directory + "/standby", standbyOf: engine) : nil
        let hosts = [engine, standby].compactMap { $0.map { "127.0.0.1:\($0.port)" } }.joined(separator: ",")
        let flags = [
            "--signing-algorithm", "ES256", "--issuer", "https://auth.example.com",
            "--journal", "postgresql://postern@\(hosts)/postgres",
        ]
        let begin = try ChildProcess(
            ChildProcess.built("posternd"), flags + ["--data-directory", first, "--cluster-init"],
            output: directory + "/begin")
        try #require(begin.wait(seconds: 60) == 0)
        mkdir(second, 0o700)
        try PrivateFile.create(second + "/master-key", try #require(readFile(first + "/master-key")))
        one = try NodeProcess(
            flags + ["--data-directory", first, "--http-address", "127.0.0.1:\(httpPort)"], port: try freePort(),
            directory: directory)
        two = try NodeProcess(
            flags + ["--data-directory", second, "--http-address", "off"], port: try freePort(),
            directory: directory)
    }

    /// False if the change was refused. NODE_BEHIND says that it did not happen; the other reasons leave it unknown.
    func create(_ id: Text) throws -> Bool {
        do {
            _ = try one.createTenant(id, in: data)
            acknowledged.append(id)
            return true
        } catch let failure as Failure {
            let reason = failure.reason.description
            reasons.append(reason)
            #expect(["NODE_BEHIND", "STORE_UNAVAILABLE", "DEADLINE_EXCEEDED"].contains(reason), "\(failure)")
            if reason == "NODE_BEHIND" { refused.append(id) }
            return false
        }
    }

    /// Waits until changes are accepted again. Then each node has every acknowledged change and no refused one.
    func expectNothingLost() throws {
        var number = 0
        try blockUntil("a change succeeds again") {
            number += 1
            return try create(Text("after-\(number)"))
        }
        try blockUntil("the node serves as before") { try get("/healthz", httpPort).hasSuffix("\r\nSERVING\n") }
        for node in [one, two] {
            for id in acknowledged { #expect(try node.displayName(ofTenant: id, in: data) == id) }
            for id in refused { #expect(throws: Failure.self) { try node.displayName(ofTenant: id, in: data) } }
        }
    }

    func stop() {
        _ = one.stop()
        _ = two.stop()
        try? standby?.stop()
    }
}
