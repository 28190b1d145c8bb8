import Base
import Glibc
import Messages
import TestSupport
import Testing

/// posternd as an operator makes a cluster of it.
@Suite(.serialized) struct ClusterProgramTests {
    private func run(_ arguments: [String], log: String) throws -> (status: Int32?, output: String) {
        let child = try ChildProcess(ChildProcess.built("posternd"), arguments, output: log)
        let status = child.wait(seconds: 60)
        return (status, String(decoding: readFile(log) ?? [], as: UTF8.self))
    }

    @Test func aStoreBecomesAClusterAndLeavesIt() async throws {
        try await withLocalEngine { engine, directory in
            let (data, log) = ("\(directory)/data", "\(directory)/log")
            let flags = ["--data-directory", data, "--http-address", "off", "--signing-algorithm", "ES256"]
            let journal = ["--journal", "postgresql://postern@127.0.0.1:\(engine.port)/postgres"]

            let nameless = try run(flags + ["--cluster-init"], log: log)
            #expect(nameless.status == 1 && nameless.output.contains("--journal"))
            #expect(try run(flags + journal + ["--cluster-leave"], log: log).status != 0)
            let made = try run(flags + journal + ["--cluster-init"], log: log)
            #expect(made.status == 0 && made.output.contains("first store of a new cluster"), "\(made.output)")
            let again = try run(flags + journal + ["--cluster-init"], log: log)
            #expect(again.status == 1 && again.output.contains("belongs to a cluster already"))
            // The other nodes would refuse tokens of such a node.
            let other = try run(flags + journal + ["--issuer", "https://other.example"], log: log)
            #expect(
                other.status == 65 && other.output.contains("issuer is https://other.example here"), "\(other.output)")
            let alone = try run(flags, log: log)
            #expect(alone.status == 65 && alone.output.contains("--cluster-leave"))

            let port = try freePort()
            let server = try NodeProcess(flags + journal, port: port, directory: directory)
            _ = try server.createTenant("acme", in: data)
            #expect(server.stop() == 0)

            let left = try run(flags + ["--cluster-leave"], log: log)
            #expect(left.status == 0 && left.output.contains("has left its cluster"), "\(left.output)")
            // By this number an operator finds the node that has most, when the engine is lost.
            let end = try engine.number("SELECT max(position) FROM postern.postern_journal")
            #expect(left.output.contains("up to entry \(end). "), "\(left.output)")
            let outsider = try run(flags + journal, log: log)
            #expect(outsider.status == 65 && outsider.output.contains("--cluster-init"))
            let single = try NodeProcess(flags, port: port, directory: directory)
            #expect(throws: (any Error).self) { try single.createTenant("acme", in: data) }
            #expect(single.stop() == 0)
        }
    }

    @Test func aServerWaitsForTheEngineAndServesReadsWithoutIt() async throws {
        try await withLocalEngine { engine, directory in
            let data = "\(directory)/data"
            let httpPort = try freePort()
            let flags = [
                "--data-directory", data, "--http-address", "127.0.0.1:\(httpPort)", "--signing-algorithm", "ES256",
                "--journal", "postgresql://postern@127.0.0.1:\(engine.port)/postgres",
            ]
            #expect(try run(flags + ["--cluster-init"], log: "\(directory)/init").status == 0)
            let port = try freePort()
            let server = try NodeProcess(flags, port: port, directory: directory)
            _ = try server.createTenant("acme", in: data)
            #expect(try get("/healthz", httpPort).hasSuffix("\r\nSERVING\n"))
            #expect(try get("/metrics", httpPort).contains("postern_journal_connected 1\n"))
            try engine.kill()
            // The entry may have been on its way to the engine that was killed.
            expectRefusals(["NODE_BEHIND", "STORE_UNAVAILABLE"]) {
                try server.createTenant("other", in: data)
            }
            expectRefusals(["NODE_BEHIND"]) { try server.createTenant("other", in: data) }
            #expect(try get("/healthz", httpPort).contains("DEGRADED: the engine of the journal"))
            #expect(try get("/metrics", httpPort).contains("postern_journal_connected 0\n"))
            #expect(try server.displayName(ofTenant: "acme", in: data) == "acme")
            // Nobody can say now whether the tenant exists.
            expectRefusals(["NODE_BEHIND"]) {
                try server.displayName(ofTenant: "other", in: data)
            }
            #expect(server.stop() == 0)
            try startWithoutEngine(engine, flags, port: port, data: data, directory)
        }
    }

    /// A node that is started while its engine is away waits, and says each thing once.
    private func startWithoutEngine(
        _ engine: LocalEngine, _ flags: [String], port: UInt16, data: String, _ directory: String
    ) throws {
        let waiting = try ChildProcess(
            ChildProcess.built("posternd"), flags + ["--listen-address", "127.0.0.1:\(port)"],
            output: "\(directory)/waiting", openFilesMax: 200)
        try blockUntil("the node waits for the engine") {
            text(of: "\(directory)/waiting").contains("waiting for the engine")
        }
        #expect(text(of: "\(directory)/waiting").contains("Connection refused"))
        try engine.start()
        let client = try waitForServer(port)
        client.apiKey = try adminKey(data)
        // A server that answers calls also handles signals.
        _ = try client.call(
            "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: "acme"), returning: TenantsGetResponse.self)
        client.close()
        waiting.send(signal: SIGTERM)
        #expect(waiting.wait(seconds: 30) == 0)
        // It has tried to start twice at least.
        let said = text(of: "\(directory)/waiting")
        let parts = said.split(separator: "connections_max is more than", omittingEmptySubsequences: false)
        #expect(parts.count == 2, "\(said)")
    }

    /// The supervisor starts the server again after status 1, and not after 65.
    @Test func aStartWhoseWriteHasAnUnknownOutcomeEndsWithStatus1() async throws {
        try await withLocalEngine { engine, directory in
            let (data, log) = ("\(directory)/data", "\(directory)/log")
            let flags = [
                "--data-directory", data, "--http-address", "off", "--signing-algorithm", "ES256",
                "--journal", "postgresql://postern@127.0.0.1:\(engine.port)/postgres",
            ]
            #expect(try run(flags + ["--cluster-init"], log: log).status == 0)
            // In another project the built-in service account has another address, so that the next start writes.
            try engine.sql("UPDATE postern.postern_cluster SET project_id = 'other'")
            // Entries of nothing, which confirm the connection, are taken. They have 37 bytes.
            try engine.sql(
                """
                CREATE FUNCTION postern.fault() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN IF octet_length(NEW.body) > 64 THEN RAISE EXCEPTION ''no room''; END IF; RETURN NEW; END';
                CREATE TRIGGER fault BEFORE INSERT ON postern.postern_journal
                    FOR EACH ROW EXECUTE FUNCTION postern.fault()
                """)
            let other = flags + ["--project-id", "other", "--issuer", "https://postern.local/postern"]
            let ended = try run(other + ["--listen-address", "127.0.0.1:0"], log: log)
            #expect(ended.status == 1 && ended.output.contains("is not known"), "\(ended.output)")
            try engine.sql("DROP FUNCTION postern.fault() CASCADE")
            let server = try NodeProcess(other, port: try freePort(), directory: directory)
            _ = try server.createTenant("acme", in: data)
            #expect(server.stop() == 0)
        }
    }

    private func expectRefusals(_ reasons: [String], _ body: () throws -> some Any) {
        do {
            _ = try body()
            Issue.record("not refused")
        } catch let failure as Failure {
            #expect(reasons.contains(failure.reason.description), "\(failure)")
        } catch {
            Issue.record("\(error)")
        }
    }
}

private func text(of path: String) -> String { String(decoding: readFile(path) ?? [], as: UTF8.self) }

func get(_ path: String, _ port: UInt16) throws -> String {
    let probe = try RawClient(port: port)
    try probe.send([UInt8]("GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8))
    var answer: [UInt8] = []
    while let more = try? probe.receive(65_536), !more.isEmpty { answer += more }
    return String(decoding: answer, as: UTF8.self)
}

private func adminKey(_ data: String) throws -> Secret {
    let line = try #require(readFile("\(data)/admin-key"))
    return Secret(Array(line.prefix { $0 != UInt8(ascii: "\n") }))
}

private func waitForServer(_ port: UInt16) throws -> RawClient {
    try blockUntilServing(port: port)
    return try RawClient(port: port)
}

/// posternd as one node of a cluster, or alone.
final class NodeProcess {
    let log: String
    private let process: ChildProcess
    private let client: RawClient

    init(_ flags: [String], port: UInt16, directory: String) throws {
        log = "\(directory)/node-\(port)"
        process = try ChildProcess(
            ChildProcess.built("posternd"), flags + ["--listen-address", "127.0.0.1:\(port)"], output: log)
        client = try waitForServer(port)
    }

    func createTenant(_ id: Text, in data: String) throws -> TenantsCreateResponse {
        client.apiKey = try adminKey(data)
        return try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: id, tenant: Messages.Tenant(displayName: id),
                updateMask: ProtobufFieldMask(paths: ["display_name"])), returning: TenantsCreateResponse.self)
    }

    func displayName(ofTenant id: Text, in data: String) throws -> Text {
        client.apiKey = try adminKey(data)
        let found = try client.call(
            "postern.v1.Tenants/Get", TenantsGetRequest(tenantID: id), returning: TenantsGetResponse.self)
        return found.tenant?.displayName ?? ""
    }

    func makeSnapshot(in data: String) throws -> ProjectMakeSnapshotResponse {
        client.apiKey = try adminKey(data)
        return try client.call(
            "postern.v1.Project/MakeSnapshot", ProjectMakeSnapshotRequest(),
            returning: ProjectMakeSnapshotResponse.self)
    }

    private var ended: Int32?

    /// The exit status of a process that ends by itself.
    func wait() -> Int32? {
        ended = process.wait(seconds: 30)
        return ended
    }

    func stop() -> Int32? {
        client.close()
        if let ended { return ended }
        process.send(signal: SIGTERM)
        return process.wait(seconds: 30)
    }
}
