import Base
import Glibc
import JSON
import Messages
import TestSupport
import Testing

@testable import postern

/// Commands that name no tenant, with keys that have their own: the files that are kept name the key's tenant, and new
/// keys are for it.
@Suite struct KeysOwnTenantTests {
    /// Runs `body` with a server that has the tenants acme and bravo.
    private func withTenants(_ body: (TestServer) async throws -> Void) async throws {
        try await withServer { server in
            for tenant in ["acme", "bravo"] {
                let made = await TestConsole.run(["tenant", "create", tenant], on: server)
                let key = await TestConsole.run(
                    [
                        "apikey", "create", "--role", "tenant-admin", "--scope-tenant", tenant, "--key-out",
                        "\(server.directory)/\(tenant).key",
                    ], on: server)
                #expect(made.code == .ok && key.code == .ok, "\(made) \(key)")
            }
            try await body(server)
        }
    }

    /// Runs a command with the key of `tenant`, and without `-t`.
    private func run(_ words: [String], keyOf tenant: String, _ server: TestServer) async -> TestConsole.Outcome {
        let test = TestConsole()
        let globals = ["--server", "127.0.0.1:\(server.port)", "--key-file", "\(server.directory)/\(tenant).key", "-y"]
        return (await CommandLineTool.run(globals + words, in: test.console), test.written, test.said)
    }

    /// The lines of three users, and not the last line, so that an import brings them in and then fails.
    private static func cutExport() -> [UInt8] {
        let rows = ["ann", "bob", "carl"].flatMap { UserLines.line(ImportUser(uid: Text($0))) }
        return UserLines.header(tenantID: "old") + rows
    }

    @Test func `An import does not go on with the key of another tenant`() async throws {
        try await withTenants { server in
            let (users, path) = ("\(server.directory)/c.ndjson", "\(server.directory)/cp")
            writeFile(users, Self.cutExport())
            let words = ["user", "import", users, "--checkpoint", path, "--on-conflict", "skip"]
            let stopped = await run(words, keyOf: "acme", server)
            #expect(stopped.code == .general && stopped.said.contains("created 3"), "\(stopped)")
            let noted = readFile(path)
            let message = "\(path): is of an import into tenant acme on 127.0.0.1:\(server.port); name another file"
            for refused in [
                await run(words, keyOf: "bravo", server), await TestConsole.run(words, on: server),
                await TestConsole.run(["-t", "bravo"] + words, on: server),
            ] {
                #expect(refused.code == .usage && refused.said.contains(message), "\(refused)")
                #expect(readFile(path) == noted)
            }
            // The same tenant, also if it is named.
            for same in [
                await run(words, keyOf: "acme", server), await TestConsole.run(["-t", "acme"] + words, on: server),
            ] {
                #expect(same.said.contains("going on behind row 3 (tenant acme)"), "\(same)")
            }
        }
    }

    @Test func `An import into the default pool goes on there only`() async throws {
        try await withTenants { server in
            let (users, path) = ("\(server.directory)/c.ndjson", "\(server.directory)/cp")
            writeFile(users, Self.cutExport())
            let words = ["user", "import", users, "--checkpoint", path, "--on-conflict", "skip"]
            let stopped = await TestConsole.run(words, on: server)
            #expect(stopped.code == .general && stopped.said.contains("created 3"), "\(stopped)")
            let refused = await run(words, keyOf: "bravo", server)
            #expect(refused.code == .usage && refused.said.contains("into the default pool on"), "\(refused)")
            let same = await TestConsole.run(words, on: server)
            #expect(same.said.contains("going on behind row 3 (the default pool)"), "\(same)")
        }
    }

    @Test func `An export does not go on with the key of another tenant`() async throws {
        try await withTenants { server in
            let file = "\(server.directory)/users.ndjson"
            let words = ["user", "export", file, "--resume"]
            let begun = UserLines.header(tenantID: "acme")
            writeFile(file, begun)
            let tenant = ServedTenant(server: "127.0.0.1:\(server.port)", tenantID: "acme")
            let place = ExportRun.Place(tenant: tenant, byteCount: Int64(begun.count), format: "ndjson").encoded()
            writeFile("\(file).resume", place)
            for refused in [await run(words, keyOf: "bravo", server), await TestConsole.run(words, on: server)] {
                #expect(refused.code == .usage && refused.said.contains("an export of tenant acme"), "\(refused)")
                #expect(readFile(file) == begun)
            }
            let done = await run(words, keyOf: "acme", server)
            #expect(done.code == .ok, "\(done)")
            #expect(readFile(file) == begun + UserLines.end(userCount: 0))
        }
    }

    @Test func `An export names the tenant of the key`() async throws {
        try await withTenants { server in
            let file = "\(server.directory)/users.ndjson"
            let whole = UserLines.header(tenantID: "acme") + UserLines.end(userCount: 0)
            let toFile = await run(["user", "export", file], keyOf: "acme", server)
            #expect(toFile.code == .ok && readFile(file) == whole, "\(toFile)")
            let toOutput = await run(["user", "export", "-", "--format", "ndjson"], keyOf: "acme", server)
            #expect(toOutput.code == .ok && toOutput.written == String(decoding: whole, as: UTF8.self), "\(toOutput)")
        }
    }

    @Test func `Users of the key's own tenant are deleted only if its name is confirmed`() async throws {
        try await withTenants { server in
            let uids = "\(server.directory)/uids.txt"
            writeFile(uids, [UInt8]("ann\n".utf8))
            let made = await run(["user", "create", "--uid", "ann"], keyOf: "acme", server)
            #expect(made.code == .ok, "\(made)")
            let words = ["user", "batch-delete", uids, "--force", "--confirm"]
            let refused = await run(words + ["default pool"], keyOf: "acme", server)
            #expect(refused.code == .declined && refused.said.contains("not \"acme\""), "\(refused)")
            let done = await run(words + ["acme"], keyOf: "acme", server)
            #expect(done.code == .ok && done.said.contains("1 users deleted"), "\(done)")
        }
    }

    @Test func `A new key is for the tenant of the key that makes it`() async throws {
        try await withTenants { server in
            let words = ["apikey", "create", "--role", "app", "-o", "json"]
            let made = await run(words, keyOf: "bravo", server)
            #expect(made.code == .ok, "\(made)")
            let key = try JSONValue(parsing: [UInt8](made.written.utf8))["api_key"]
            #expect(key?["scope"]?["tenant_id"] == "bravo", "\(made)")
            let tried = await run(words + ["--dry-run"], keyOf: "acme", server)
            #expect(tried.code == .ok, "\(tried)")
            // A key for all tenants has no tenant of its own.
            let unnamed = await TestConsole.run(words, on: server)
            #expect(
                unnamed.code == .general && unnamed.said.contains("--scope-tenant ID or --all-tenants"), "\(unnamed)")
            let both = await run(words + ["--scope-tenant", "bravo", "--all-tenants"], keyOf: "bravo", server)
            #expect(both.code == .usage && both.said.contains("do not go together"), "\(both)")
            let listed = await run(["apikey", "list", "-q"], keyOf: "bravo", server)
            #expect(listed.written.split(separator: "\n").count == 2, "\(listed)")
        }
    }

    @Test func `A file of an earlier version may be of the tenant of any key`() throws {
        let named: JSONValue = ["server": "a:7400", "tenant": "acme"]
        #expect(ServedTenant(in: named) == ServedTenant(server: "a:7400", tenantID: "acme"))
        let former: JSONValue = ["server": "a:7400", "tenant": ""]
        #expect(ServedTenant(in: former) == nil)
        let pool = ServedTenant(server: "a:7400", tenantID: .empty, historyID: "aa")
        #expect(ServedTenant(in: .object(pool.members)) == pool)
    }
}
