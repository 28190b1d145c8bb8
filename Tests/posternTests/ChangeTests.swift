import Base
import TestSupport
import Testing

@testable import postern

/// What a command says and asks before it changes something.
@Suite struct ChangeTests {
    /// Commands that change nothing on a server: each new one is added here or names the server it changes.
    private static let readOnly: Set<String> = [
        "account auth-uri", "account check-code", "account lookup", "apikey list",
        "audit export", "audit key", "audit list", "audit verify", "audit watch", "backup create", "backup restore",
        "backup verify", "can-i", "certificate list", "completion bash", "completion fish",
        "completion words", "completion zsh", "context add", "context list",
        "cluster status", "cluster verify", "context rm", "context show", "context use", "denials list",
        "denials watch", "email-config get",
        "email-config preview",
        "hook-config get",
        "help commands", "help exit-codes", "help flags", "help reference", "key list", "outbox get", "outbox list",
        "provider get",
        "provider list", "provider test",
        "revocations watch", "rpc describe", "rpc list", "server health", "server info", "server stats",
        "service-account get",
        "service-account key list", "service-account list", "session list", "session watch", "sms-config get",
        "server cert", "store verify", "tenant get", "tenant history", "tenant list", "tenant usage", "token decode",
        "token verify",
        "token verify-cookie",
        "user batch-get", "user count", "user explain-link", "user export", "user get", "user list", "user mfa list",
        "user query", "user verify-hash",
        "version", "whoami",
    ]

    /// The groups of commands whose changes are the project's, whatever tenant is set.
    private static let projectGroups: Set<String> = ["apikey", "certificate", "cluster", "key", "service-account"]

    @Test func `Every command that changes something names its server first, and no other does`() async throws {
        try await withTemporaryDirectory { directory in
            try CommandExample.writeFiles(in: directory)
            var changes = 0
            for command in CommandTree.commands {
                let isReadOnly = Self.readOnly.contains(command.name)
                #expect(command.isReadOnly == isReadOnly, "\(command.name)")
                // These commands go on until they are stopped.
                if command.path.last == "watch" { continue }
                let test = TestConsole(
                    answers: ["y", "y"], input: "a.b.c",
                    environment: [
                        "HOME": "/nonexistent", "XDG_CONFIG_HOME": directory, "POSTERN_SERVER": "127.0.0.1:1",
                        "POSTERN_TENANT": "acme",
                    ])
                let words = try CommandExample.words(of: command, in: directory)
                let code = await CommandLineTool.run(words, in: test.console)
                // Each example that names a tenant names acme.
                let isOfProject = Self.projectGroups.contains(command.path[0])
                let target = isOfProject ? "" : ", tenant acme"
                let names = test.said.contains("on 127.0.0.1:1 (POSTERN_SERVER)\(target)\n")
                #expect(names == !isReadOnly, "\(words): \(test.said)")
                if !isReadOnly {
                    changes += 1
                    #expect(code == .unavailable, "\(words): \(test.said)")
                }
            }
            #expect(changes == CommandTree.commands.count - Self.readOnly.count)
        }
    }

    private func run(
        _ words: [String], answers: [String] = [], server: String, isProduction: Bool = true,
        variables: [String: String] = [:]
    ) async throws -> (code: ExitCode, said: String) {
        try await withTemporaryDirectory { directory in
            let home = ["HOME": "/nonexistent", "XDG_CONFIG_HOME": directory]
            let mark = isProduction ? ["--production"] : []
            for (name, server) in [("live", server), ("other", "127.0.0.1:2")] {
                let add = TestConsole(environment: home)
                let marks = name == "live" ? mark : []
                #expect(
                    await CommandLineTool.run(["context", "add", name, "--server", server] + marks, in: add.console)
                        == .ok)
            }
            let test = TestConsole(answers: answers, environment: home.merging(variables) { $1 })
            return (await CommandLineTool.run(words, in: test.console), test.said)
        }
    }

    @Test(
        arguments: [
            (["--context", "live"], [:]), (["--server", "127.0.0.1:1"], [:]), (["--server", "LOCALHOST:1"], [:]),
            ([], ["POSTERN_SERVER": "127.0.0.1:1"]), ([], [:]),
        ] as [([String], [String: String])])
    func `A production server is asked about, however it was named`(
        globals: [String], variables: [String: String]
    ) async throws {
        func change(_ words: [String], _ answers: [String]) async throws -> (code: ExitCode, said: String) {
            try await run(globals + words, answers: answers, server: "127.0.0.1:1", variables: variables)
        }
        let create = ["tenant", "create", "acme"]
        let silent = try await change(create, [])
        #expect(silent.code == .usage && silent.said.contains("Add --production if you mean it"), "\(silent)")
        #expect(try await change(create + ["--yes"], []).code == .usage)
        #expect(try await change(create, ["yes"]).code == .declined)
        #expect(try await change(create, ["live"]).code == .unavailable)
        let meant = try await change(create + ["--production"], [])
        #expect(meant.code == .unavailable && meant.said.contains("production: context live"), "\(meant)")
        // The name of the deleted object is not the name of the server.
        #expect(try await change(["tenant", "delete", "acme"], ["acme"]).code == .declined)
        #expect(try await change(["tenant", "delete", "acme"], ["live", "acme"]).code == .unavailable)
        // A command that changes nothing does not ask.
        #expect(try await change(["tenant", "list"], []).code == .unavailable)
        #expect(try await change(create + ["--validate-only"], []).code == .unavailable)
    }

    @Test func `Another server and a context without the mark are not asked about`() async throws {
        let create = ["tenant", "create", "acme"]
        #expect(try await run(["--context", "other"] + create, server: "127.0.0.1:1").code == .unavailable)
        #expect(try await run(create, server: "127.0.0.1:1", isProduction: false).code == .unavailable)
    }

    @Test func `A context that is named goes before the environment: the tenant is made there`() async throws {
        try await withServer { server in
            try await withTemporaryDirectory { directory in
                let environment = [
                    "HOME": "/nonexistent", "XDG_CONFIG_HOME": directory, "POSTERN_SERVER": "127.0.0.1:1",
                    "POSTERN_KEY_FILE": "/nonexistent/key", "POSTERN_TENANT": "elsewhere",
                ]
                func run(_ words: [String]) async -> (code: ExitCode, written: String, said: String) {
                    let test = TestConsole(environment: environment)
                    return (await CommandLineTool.run(words, in: test.console), test.written, test.said)
                }
                _ = TestConsole.globals(for: server)
                let address = "127.0.0.1:\(server.port)"
                let key = "\(server.directory)/admin-key"
                #expect(await run(["context", "add", "two", "--server", address, "--key-file", key]).code == .ok)
                let made = await run(["--context", "two", "tenant", "create", "acme"])
                #expect(made.code == .ok && made.said == "on \(address) (context two), tenant acme\n", "\(made)")
                let user = await run(["--context", "two", "user", "create", "--email", "a@b.example", "-q"])
                #expect(user.code == .ok && user.said.isEmpty, "\(user)")
                let listed = await run(["--context", "two", "tenant", "list", "-q"])
                #expect(listed.written.contains("acme\n") && listed.said.isEmpty, "\(listed)")
                let failed = await run(["--context", "two", "tenant", "create", "acme", "-o", "json"])
                #expect(failed.code == .conflict && failed.said.contains("\"server\":\"\(address)\""), "\(failed)")
                #expect(failed.said.split(separator: "\n").count == 1)
            }
        }
    }
}
