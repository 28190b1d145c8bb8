import Base
import Glibc
import JSON
import Service
import TestSupport
import Testing

@testable import postern

/// What `postern tenant` does with many tenants, and with their history.
@Suite struct TenantCommandsTests {
    @Test func tenantsAreFoundChangedAndTheirHistoryRead() async throws {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            for id in ["shop-1", "shop-2", "acme"] {
                #expect(await run("tenant", "create", id, "--display-name", "Name of \(id)").code == .ok)
            }
            let filter = "id=shop- and allow-password-signup=true and name=OF SHOP"
            #expect(await run("tenant", "list", "--where", filter, "-q").written == "shop-1\nshop-2\n")
            let dry = await run(
                "tenant", "update", "--where", filter, "--refresh-mode", "reuse", "--validate-only")
            #expect(dry.code == .ok && dry.written.contains("shop-2") && dry.written.contains("true"))
            #expect(dry.said.hasPrefix("dry run: this would be done, and nothing is changed, on "), "\(dry.said)")
            #expect(dry.said.contains("without --dry-run: tenants changed: 2"), "\(dry.said)")
            #expect(await run("tenant", "history", "shop-2", "-q").written == "1\n")
            let done = await run("tenant", "update", "--where", filter, "--refresh-mode", "reuse", "-o", "ndjson")
            #expect(done.code == .ok && done.said.contains("changed: 2"))
            #expect(done.written.split(separator: "\n").count == 2)
            let history = await run("tenant", "history", "shop-1", "-o", "json")
            let changes = try JSONValue(parsing: [UInt8](history.written.utf8)).array ?? []
            let first = try #require(changes.first)
            #expect(first["revision"]?.integer == 2)
            #expect(
                first["changes"]?.array?.first == [
                    "path": "refresh_mode", "before": "REFRESH_MODE_ROTATE", "after": "REFRESH_MODE_REUSE",
                ])
            let table = await run("tenant", "history", "shop-1").written
            #expect(table.contains("BEFORE") && table.contains("refresh_mode  REFRESH_MODE_ROTATE  REFRESH_MODE_REUSE"))
            // Setting a value that is set already changes nothing.
            #expect(await run("tenant", "update", "shop-1", "--refresh-mode", "reuse").code == .ok)
            #expect(await run("tenant", "history", "shop-1").written == table)
            #expect(table.contains("(created)") && !table.contains("(as it was)"), "\(table)")
            #expect(await run("tenant", "copy-settings", "shop-1", "acme").written.contains("REFRESH_MODE_REUSE"))
            // The default pool is no template.
            #expect(await run("tenant", "copy-settings", "", "acme").code == .usage)
            #expect(await run("tenant", "create", "shop-3", "--template", "shop-1").written.contains("REUSE"))
            let revision = await run("tenant", "update", "acme", "--display-name", "x", "--if-revision", "1")
            #expect(revision.code != .ok && revision.said.contains("REVISION_MISMATCH"))
        }
    }

    @Test(
        arguments: [
            (["--if-revision", "1"], "--if-revision is for one tenant"),
            (["--end-sessions-without-second-factor"], "--end-sessions-without-second-factor is for one tenant"),
        ])
    func `A flag that a change of many tenants cannot heed is refused`(flag: [String], message: String) async {
        let test = TestConsole()
        let words = ["tenant", "update", "--where", "all", "--disable-auth", "true", "-y"]
        #expect(await CommandLineTool.run(words + ["--server", "127.0.0.1:1"] + flag, in: test.console) == .usage)
        #expect(test.said.contains(message) && !test.said.contains("on 127.0.0.1:1"), "\(test.said)")
    }

    @Test(
        arguments: [
            "name=Shop and name=South", "id=a and suspended=true and id=b", "suspended=true and suspended=true",
        ])
    func `A condition that is given twice is refused`(condition: String) async {
        let test = TestConsole()
        #expect(await test.run("tenant", "list", "--where", condition, "--server", "127.0.0.1:1") == .usage)
        #expect(test.said.contains("is given twice"), "\(test.said)")
    }

    /// Such as of a script's variable that is not set.
    @Test(
        arguments: [
            ["tenant", "list", "--where", "id= and enable-anonymous-user=false"],
            ["tenant", "list", "--where", "name="],
            ["user", "query", ""], ["user", "query", "--email-prefix", ""], ["user", "query", "--claim", "=1"],
            ["user", "patch", "--raw-id", "", "--set-disabled", "true", "-y"], ["audit", "list", "--user", ""],
            ["denials", "list", "--email", ""],
        ])
    func `An empty condition is refused`(words: [String]) async {
        let test = TestConsole()
        let code = await CommandLineTool.run(words + ["--server", "127.0.0.1:1"], in: test.console)
        #expect(code == .usage && test.said.contains("is empty"), "\(test.said)")
    }

    @Test func `A bound of time at 1970 is a bound`() async throws {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            let never = await run("user", "create", "--email", "never@example.com", "-q")
            #expect(never.code == .ok)
            #expect(await run("user", "query", "--signed-in-before", "1970-01-01", "-q").written == never.written)
            #expect(await run("user", "query", "--signed-in-after", "1970-01-01", "-q").written.isEmpty)
            #expect(await run("audit", "list", "--to", "1970-01-01", "-q").written.isEmpty)
        }
    }

    @Test(
        arguments: [
            (["tenant", "update", "--where", "all"], "EVERY tenant"),
            (["tenant", "update", "--where", "id=shop-"], "every tenant where id=shop-"),
            (["tenant", "update", "shop-299"], "tenant shop-299"),
            (["tenant", "update", ""], "the default pool or the key's own tenant"),
            (["tenant", "update"], "tenant acme"), (["tenant", "create", "shop-300"], "tenant shop-300"),
            (["tenant", "create"], "a new tenant"),
        ])
    func `The tenant that a command changes is announced, not the usual one`(words: [String], target: String) async {
        let test = TestConsole(environment: ["HOME": "/nonexistent", "POSTERN_TENANT": "acme"])
        let more = ["--display-name", "Shop", "-y", "--server", "127.0.0.1:1"]
        #expect(await CommandLineTool.run(words + more, in: test.console) == .unavailable)
        #expect(test.said.hasPrefix("on 127.0.0.1:1 (--server), \(target)\n"), "\(test.said)")
    }

    @Test func `A call announces the tenant that its request names`() async throws {
        try await withTemporaryDirectory { directory in
            let file = "\(directory)/request"
            writeFile(file, [UInt8](#"{"tenant_id":"shop-299"}"#.utf8))
            let test = TestConsole(environment: ["HOME": "/nonexistent", "POSTERN_TENANT": "acme"])
            _ = await test.run("rpc", "call", "Tenants/Delete", file, "-y", "--server", "127.0.0.1:1")
            #expect(test.said.hasPrefix("on 127.0.0.1:1 (--server), tenant shop-299\n"), "\(test.said)")
        }
    }

    @Test func `Many tenants are changed to the last one when nobody reads the output`() async throws {
        try await withServer { server in
            for id in ["shop-1", "shop-2"] {
                #expect(await TestConsole.run(["tenant", "create", id], on: server).code == .ok)
            }
            let test = TestConsole(outputErrorCode: EPIPE)
            let change = ["tenant", "update", "--where", "id=shop-", "--refresh-mode", "reuse"]
            let code = await CommandLineTool.run(TestConsole.globals(for: server) + change, in: test.console)
            #expect(code == .general && test.said.contains("tenants changed: 2"), "\(test.said)")
            let second = await TestConsole.run(["tenant", "get", "shop-2"], on: server)
            #expect(second.written.contains("REFRESH_MODE_REUSE"), "\(second)")
        }
    }

    @Test(arguments: ["colour=red", "nothing", "=x", "guidance-url=https://x.example", "recent-login=soon"])
    func aWrongConditionIsSaidBeforeAnythingIsAsked(_ condition: String) async throws {
        let test = TestConsole()
        #expect(await test.run("tenant", "list", "--where", condition) == .usage)
    }

    @Test func refusalsOfAllTenantsAreListedByAddress() async throws {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            #expect(await run("tenant", "create", "acme", "--disabled-user-signup", "true").code == .ok)
            let file = "\(server.directory)/password"
            writeFile(file, [UInt8]("correct horse".utf8))
            let refused = await run(
                "-t", "acme", "account", "sign-up", "--email", "ann@example.com", "--password-file", file)
            #expect(refused.code != .ok)
            let listed = await run("denials", "list", "--all-tenants", "--email", "ann@example.com", "-q")
            #expect(listed.written == "acme 1\n")
            #expect(await run("-t", "acme", "denials", "list", "--email", "bob@example.com", "-q").written.isEmpty)
            // In another tenant than was meant, an empty list would say that she was never refused.
            let elsewhere = await run("denials", "list", "--email", "ann@example.com")
            #expect(elsewhere.said.contains("No tenant was named: the default pool was asked"), "\(elsewhere.said)")
            let bob = await run("-t", "acme", "denials", "list", "--email", "bob@example.com")
            #expect(bob.said.contains("nothing was found in tenant acme"), "\(bob.said)")
        }
    }

    @Test func `All counts of refusals are printed, or as many as asked for`() async throws {
        try await withServer(configure: { $0.limits.pageSizeMax = 3 }) { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            #expect(await run("tenant", "create", "acme", "--disabled-user-signup", "true").code == .ok)
            let file = "\(server.directory)/password"
            writeFile(file, [UInt8]("correct horse".utf8))
            for _ in 0..<4 {
                let refused = await run(
                    "-t", "acme", "account", "sign-up", "--email", "ann@example.com", "--password-file", file)
                #expect(refused.code != .ok)
                server.clock.advance(by: .hours(1))
            }
            let all = await run("-t", "acme", "denials", "list", "--counts", "-o", "ndjson")
            let lines = all.written.split(separator: "\n")
            #expect(all.code == .ok && lines.count == 4, "\(all.written)")
            let newest = await run("-t", "acme", "denials", "list", "--counts", "--limit", "2", "-o", "ndjson")
            #expect(newest.written.split(separator: "\n") == Array(lines.prefix(2)))
        }
    }
}
