import Base
import Glibc
import JSON
import Messages
import TestSupport
import Testing

@testable import postern

/// Keys that are shown once: where they go, and that no key is made when it could not be kept.
@Suite struct NewKeyTests {
    private func run(_ server: TestServer, _ words: String...) async -> TestConsole.Outcome {
        await TestConsole.run(words, on: server)
    }

    private func mode(of path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test func `A new API key goes into a new file of its owner's, and works from there`() async throws {
        try await withServer { server in
            let path = "\(server.directory)/shop.key"
            let made = await run(
                server, "apikey", "create", "--role", "project-admin", "--key-out", path, "-o", "json")
            #expect(made.code == .ok && mode(of: path) == 0o600, "\(made)")
            let printed = try JSONValue(parsing: [UInt8](made.written.utf8))
            #expect(printed["secret_key"] == "")
            let used = TestConsole()
            // The first of the two servers does not exist.
            let servers = "127.0.0.1:\(try freePort()),127.0.0.1:\(server.port)"
            #expect(await used.run("apikey", "list", "--server", servers, "--key-file", path) == .ok)
        }
    }

    @Test(arguments: [
        ["apikey", "create", "--role", "app", "--all-tenants"], ["service-account", "key", "create", "shop"],
    ])
    func `A file that exists, or cannot be made, is said before a key is made`(words: [String]) async throws {
        try await withServer { server in
            _ = await run(server, "service-account", "create", "shop", "--role", "app", "--all-tenants")
            let list = words[0] == "apikey" ? ["apikey", "list"] : ["service-account", "key", "list", "shop"]
            let before = await TestConsole.run(list, on: server)
            let taken = "\(server.directory)/taken"
            writeFile(taken, [UInt8]("old".utf8))
            for path in [taken, "\(server.directory)/none/key"] {
                let refused = await TestConsole.run(words + ["--key-out", path], on: server)
                #expect(refused.code == .usage && refused.said.contains(path), "\(refused)")
            }
            #expect(await TestConsole.run(words + ["--key-out", taken, "--validate-only"], on: server).code == .usage)
            #expect(readFile(taken) == [UInt8]("old".utf8))
            #expect(!File.exists("\(server.directory)/none"))
            #expect(await TestConsole.run(list, on: server).written == before.written)
        }
    }

    @Test func `A refused key, or one that is only checked, leaves no file`() async throws {
        try await withServer { server in
            let path = "\(server.directory)/new"
            let refused = await run(
                server, "apikey", "create", "--role", "app", "--scope-tenant", "none-such", "--key-out", path)
            #expect(refused.code == .notFound && !File.exists(path), "\(refused)")
            let account = await run(server, "service-account", "key", "create", "nobody", "--key-out", path)
            #expect(account.code == .notFound && !File.exists(path), "\(account)")
            let checked = await run(
                server, "apikey", "create", "--role", "app", "--all-tenants", "--key-out", path, "--validate-only")
            #expect(checked.code == .ok && !File.exists(path), "\(checked)")
        }
    }

    @Test func `A new secret that is lost leaves the old one as it is, and that is the advice`() async throws {
        try await withServer { server in
            let made = await run(server, "apikey", "create", "--role", "app", "--all-tenants", "-o", "json")
            let json = try JSONValue(parsing: [UInt8](made.written.utf8))
            let id = try #require(json["api_key"]?["api_key_id"]?.string)
            for (overlap, advice) in [
                ("24h", "Do not rotate again: make another key and move to it before then.\n"),
                ("0", "and the old one has ended: make another key with postern apikey create\n"),
            ] {
                let test = TestConsole(outputErrorCode: ENOSPC)
                let words = TestConsole.globals(for: server) + ["apikey", "rotate", id, "--overlap", overlap]
                #expect(await CommandLineTool.run(words, in: test.console) == .general)
                #expect(test.said.contains(advice) && !test.said.contains("revoke"), "\(test.said)")
                #expect(test.said.hasSuffix("error: standard output: No space left on device\n"), "\(test.said)")
            }
        }
    }

    @Test(arguments: ["secret", "key", "api_key.api_key_id", "secret_key,api_key.rolle"])
    func `Fields that would throw a new secret away are refused before it is made`(fields: String) async throws {
        try await withServer { server in
            let made = await run(server, "apikey", "create", "--role", "app", "--all-tenants", "-o", "json")
            let json = try JSONValue(parsing: [UInt8](made.written.utf8))
            let id = try #require(json["api_key"]?["api_key_id"]?.string)
            let before = await run(server, "apikey", "list", "-o", "json")
            for words in [["rotate", id], ["create", "--role", "app", "--all-tenants"]] {
                let all = ["apikey"] + words + ["--fields", fields, "-o", "json"]
                let refused = await TestConsole.run(all, on: server)
                #expect(refused.code == .usage && refused.said.contains("--fields"), "\(refused)")
            }
            #expect(await run(server, "apikey", "list", "-o", "json").written == before.written)
            let good = await run(
                server, "apikey", "rotate", id, "--fields", "secret_key,api_key.created_at", "-o", "csv")
            #expect(good.code == .ok && good.written.contains("pk_"), "\(good)")
        }
    }

    @Test func `The answer of a change is printed whole where a field is misspelt`() async throws {
        try await withServer { server in
            #expect(await run(server, "user", "create", "--uid", "u1").code == .ok)
            let minted = await run(server, "token", "mint", "u1", "--fields", "token", "-o", "json")
            let json = try JSONValue(parsing: [UInt8](minted.written.utf8))
            #expect(minted.code == .general && minted.said.contains("there is no field token"), "\(minted)")
            #expect(json["custom_token"]?.string?.isEmpty == false)
        }
    }

    @Test func `A secret that nobody read is told, and is no success`() async throws {
        try await withServer { server in
            for (words, advice) in [
                (["apikey", "create", "--role", "app", "--all-tenants"], "the key was made and is lost; undo it"),
                (["tenant", "create", "acme"], "postern tenant create was carried out"),
            ] {
                let test = TestConsole(outputErrorCode: EPIPE)
                let code = await CommandLineTool.run(TestConsole.globals(for: server) + words, in: test.console)
                #expect(code == .general && test.said.contains(advice), "\(test.said)")
                #expect(!test.said.contains("standard output"), "\(test.said)")
            }
        }
    }

    @Test func `The end of the old secret is told when the new one is lost`() {
        let key = ApiKey(previousSecretUntilMicros: 1_600_000_000_000_000)
        #expect(
            APIKeyCommands.adviceOnLostRotation(key).hasPrefix(
                "the new secret is lost; the old one stays valid until 2020-09-13T12:26:40"))
    }

    @Test func `A dry run of a key's rotation prints no key, and makes none`() async throws {
        try await withServer { server in
            let before = await run(server, "key", "list")
            for format in ["table", "json"] {
                let trial = await run(server, "key", "rotate", "--dry-run", "-o", format)
                #expect(trial.code == .ok && trial.written.isEmpty, "\(trial)")
            }
            #expect(await run(server, "key", "list").written == before.written)
        }
    }

    @Test func `With -q the key alone is printed, and its id when the key is in a file`() async throws {
        try await withServer { server in
            let made = await run(server, "apikey", "create", "--role", "app", "--all-tenants", "-q")
            #expect(made.code == .ok && made.written.hasPrefix("pk_") && made.said.isEmpty, "\(made)")
            let path = "\(server.directory)/quiet"
            let kept = await run(server, "apikey", "create", "--role", "app", "--all-tenants", "-q", "--key-out", path)
            #expect(!kept.written.contains("pk_") && kept.written.count > 1, "\(kept)")
            #expect((readFile(path) ?? []).starts(with: [UInt8]("pk_".utf8)))
        }
    }
}
