import Base
import JSON
import TestSupport
import Testing
import Transport

@testable import postern

/// `postern cluster …`: nodes that hold the same, nodes that do not, and servers that are not nodes.
@Suite struct ClusterCommandsTests {
    /// `names`: the value of --server, if it is not the list of the servers.
    private func run(
        _ words: [String], on servers: [TestServer], named names: String? = nil
    ) async -> TestConsole.Outcome {
        let test = TestConsole()
        var globals = TestConsole.globals(for: servers[0])
        globals[1] = names ?? servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        return (await CommandLineTool.run(globals + words, in: test.console), test.written, test.said)
    }

    private func create(_ tenant: String, on server: TestServer) async {
        let created = await TestConsole.run(["tenant", "create", tenant], on: server)
        #expect(created.code == .ok, "\(created.said)")
    }

    @Test func `Nodes of one journal hold the same`() async throws {
        try await withTwoServers { first, second in
            await create("acme", on: first)
            await create("globex", on: second)
            let verified = await run(["cluster", "verify", "-o", "json"], on: [first, second])
            #expect(verified.code == .ok, "\(verified.said)")
            let tables = try #require(try JSONValue(parsing: [UInt8](verified.written.utf8)).array)
            let tenants = try #require(tables.first { $0["table"] == "tenants" })
            #expect(tenants["differing"]?.array?.isEmpty == true, "\(verified.written)")
            let position = tables.first?["position"]
            let entry = position?.integer ?? 0
            #expect(verified.said.contains("both nodes hold the same rows, up to entry \(entry) of the journal\n"))
            #expect(tables.allSatisfy { $0["position"] == position && $0["differing"]?.array?.isEmpty == true })

            let status = await run(["cluster", "status", "-o", "json"], on: [first, second])
            let nodes = try #require(try JSONValue(parsing: [UInt8](status.written.utf8)).array)
            #expect(status.code == .ok && nodes.count == 2)
            for node in nodes {
                #expect(node["in_cluster"] == true && node["connected"] == true)
                #expect(node["cluster_id"] == .string(Text(String(repeating: "09", count: 16))))
            }
        }
    }

    @Test func `Nodes that differ are told, with their tables`() async throws {
        try await withTwoServers(areTornApart: true) { first, second in
            await create("acme", on: first)
            await create("globex", on: second)
            let verified = await run(["cluster", "verify"], on: [first, second])
            #expect(verified.code == .damaged)
            #expect(verified.said.contains("tenants"), "\(verified.said)")
            #expect(!verified.said.contains("hold the same"), "\(verified.said)")
            #expect(verified.written.contains("127.0.0.1:\(second.port)"), "\(verified.written)")
        }
    }

    @Test func `Servers that are no nodes have nothing to compare`() async throws {
        try await withServer { server in
            let alone = await run(["cluster", "verify"], on: [server])
            #expect(alone.code == .usage)
            let listener = try server.listen(port: 0)
            let names = "127.0.0.1:\(server.port),127.0.0.1:\(listener.address.port)"
            let both = await run(["cluster", "verify"], on: [server], named: names)
            #expect(both.code == .general && both.said.contains("not nodes of one cluster"), "\(both.said)")
            listener.close()
            let status = await run(["cluster", "status"], on: [server])
            #expect(status.code == .ok && status.written.contains("false"))
        }
    }

    @Test func `A node that does not answer is named, and the others are shown`() async throws {
        try await withTwoServers { first, _ in
            let names = "127.0.0.1:\(first.port),127.0.0.1:1"
            let test = TestConsole()
            var globals = TestConsole.globals(for: first)
            globals[1] = names
            #expect(await CommandLineTool.run(globals + ["cluster", "status"], in: test.console) == .unavailable)
            #expect(test.written.contains("127.0.0.1:\(first.port)") && test.said.contains("127.0.0.1:1"))
        }
    }

    @Test func `A node is not compared with itself`() async throws {
        try await withServer { server in
            for names in ["127.0.0.1:\(server.port),127.0.0.1:\(server.port)", "127.0.0.1:1, localhost:0001"] {
                let same = await run(["cluster", "verify"], on: [server], named: names)
                #expect(same.code == .usage && same.said.contains("names a node twice"), "\(same.said)")
            }
        }
    }

    @Test func `Nodes that refuse the key are not told as nodes that cannot be reached`() async throws {
        try await withTwoServers { first, second in
            let key = "\(first.directory)/weak.key"
            let made = await TestConsole.run(
                ["apikey", "create", "--role", "verifier", "--all-tenants", "--key-out", key], on: first)
            #expect(made.code == .ok, "\(made.said)")
            writeFile("\(first.directory)/wrong.key", [UInt8]("pk_a_b".utf8))
            let both = "127.0.0.1:\(first.port),127.0.0.1:\(second.port)"
            func status(_ servers: String, _ key: String, _ more: [String] = []) async -> (ExitCode, String) {
                let test = TestConsole()
                let words = ["--server", servers, "--key-file", key, "cluster", "status"] + more
                return (await CommandLineTool.run(words, in: test.console), test.said)
            }
            let weak = await status(both, key)
            #expect(weak.0 == .notAllowed && weak.1.contains("[INSUFFICIENT_PERMISSION]"), "\(weak.1)")
            #expect(weak.1.contains("127.0.0.1:\(first.port): ") && weak.1.contains("127.0.0.1:\(second.port): "))
            let wrong = await status(both, "\(first.directory)/wrong.key", ["-o", "json"])
            let failure = try JSONValue(parsing: [UInt8](wrong.1.utf8))
            #expect(wrong.0 == .notAllowed && failure["reason"] == "CALLER_UNAUTHENTICATED", "\(wrong.1)")
            // One that cannot be reached makes the answer uncertain.
            let away = await status("127.0.0.1:\(first.port),127.0.0.1:1", key)
            #expect(away.0 == .unavailable && away.1.contains("[CONNECTION_FAILED]"), "\(away.1)")
        }
    }
}
