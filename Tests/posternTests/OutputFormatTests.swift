import Base
import Glibc
import JSON
import TestSupport
import Testing

@testable import postern

/// What -o json promises: programs read standard output, and people read standard error.
@Suite struct OutputFormatTests {
    private static func json(_ outcome: TestConsole.Outcome) throws -> JSONValue {
        try JSONValue(parsing: [UInt8](outcome.written.utf8))
    }

    /// Commands that go on until they are stopped, whose output has another format (docs/cli.md), or that would ask
    /// other machines.
    private static func isLeftOut(_ command: Command) -> Bool {
        ["help", "completion", "cluster"].contains(command.path[0]) || command.path.last == "watch"
            || ["user export", "email-config test", "provider test"].contains(command.name)
    }

    @Test func `Each command prints one JSON value or nothing on standard output`() async throws {
        try await withServer { server in
            try await withTemporaryDirectory { directory in
                try CommandExample.writeFiles(in: directory)
                writeFile("\(directory)/u1.ndjson", [UInt8](#"{"uid":"u1","email":"ann@example.com"}"#.utf8))
                for tenant in ["acme", "template"] {
                    #expect(await TestConsole.run(["tenant", "create", tenant], on: server).code == .ok)
                }
                for tenant in ["acme", ""] {
                    let imported = await TestConsole.run(
                        ["-t", tenant, "user", "import", "\(directory)/u1.ndjson"], on: server)
                    #expect(imported.code == .ok, "\(imported.said)")
                }
                let environment = [
                    "HOME": "/nonexistent", "XDG_CONFIG_HOME": directory,
                    "POSTERN_SERVER": "127.0.0.1:\(server.port)", "POSTERN_KEY_FILE": "\(server.directory)/admin-key",
                ]
                var printing = 0
                for command in CommandTree.commands where !Self.isLeftOut(command) {
                    let test = TestConsole(answers: ["y", "y"], input: "a.b.c", environment: environment)
                    // What is tried and not done leaves the others what they need.
                    let trial = command.isValidatable ? ["--dry-run"] : []
                    let words = try CommandExample.words(of: command, in: directory) + ["-o", "json"] + trial
                    _ = await CommandLineTool.run(words, in: test.console)
                    if test.written.isEmpty { continue }
                    printing += 1
                    #expect(command.prints == .records || command.name == "rpc call", "\(words): it prints records")
                    let parsed = try? JSONValue(parsing: [UInt8](test.written.utf8))
                    #expect(parsed != nil, "\(words): \(test.written)")
                }
                // Most examples succeed here, and print something.
                #expect(printing >= 30, "\(printing)")
            }
        }
    }

    @Test func `A change of many tenants is one array, and so is one of none`() async throws {
        try await withServer { server in
            func run(_ words: String...) async -> TestConsole.Outcome { await TestConsole.run(words, on: server) }
            for id in ["shop-1", "shop-2"] { #expect(await run("tenant", "create", id).code == .ok) }
            let update = ["tenant", "update", "--refresh-mode", "reuse", "--where"]
            let done = await TestConsole.run(update + ["id=shop-", "-o", "json"], on: server)
            #expect(done.said.contains("tenants changed: 2"), "\(done.said)")
            let results = try #require(try Self.json(done).array)
            let ids = results.compactMap { $0["tenant_id"]?.string }
            #expect(ids == ["shop-1", "shop-2"] && results.first?["is_changed"]?.bool == true)
            let none = await TestConsole.run(update + ["id=nobody", "-o", "json"], on: server)
            #expect(try Self.json(none) == [])
            // CSV has one header, with the columns of all its lines.
            let csv = await TestConsole.run(update + ["id=shop-", "-o", "csv"], on: server)
            let lines = csv.written.split(separator: "\r\n").map(String.init)
            #expect(lines.count == 3 && lines.first?.hasPrefix("tenant_id,is_changed") == true, "\(csv.written)")
        }
    }

    @Test func `The counts of an import are an object`() async throws {
        try await withServer { server in
            let file = "\(server.directory)/users.ndjson"
            writeFile(file, [UInt8]("{\"uid\":\"ann\"}\n{\"uid\":\"ann\"}\n".utf8))
            let done = await TestConsole.run(["user", "import", file, "-o", "json"], on: server)
            #expect(done.code == .partial)
            let counts: JSONValue = ["read": 2, "created": 1, "replaced": 0, "skipped": 0, "rejected": 1]
            let written = try Self.json(done)
            #expect(written == counts)
            let created = await TestConsole.run(
                ["user", "import", file, "--on-conflict", "skip", "--fields", "skipped", "-o", "json"], on: server)
            let skipped = try Self.json(created)
            #expect(skipped == ["skipped": 2])
        }
    }

    @Test func `The version is an object`() async throws {
        let test = TestConsole()
        #expect(await test.run("version", "-o", "json") == .ok)
        #expect(try JSONValue(parsing: [UInt8](test.written.utf8))["version"]?.string == CommandLineTool.version)
    }

    /// The files that write to standard output past `Output`, with the number of places. Each place is for people
    /// alone, or is one of those that docs/cli.md names.
    private static let writers = [
        "AuditCommands.swift": 1, "AuditExport.swift": 1, "BackupCommands.swift": 1, "CommandLineTool.swift": 1,
        "CompletionCommands.swift": 4, "EmailTemplateCommands.swift": 2, "ImportRun.swift": 1,
        "InformationCommands.swift": 5, "RPCCommands.swift": 1, "ServerProgram.swift": 1,
        "ServiceAccountKeyCommands.swift": 1, "UserExport.swift": 1,
    ]
    /// The files that print records one by one.
    private static let followers: Set = [
        "RevocationCommands.swift", "SessionCommands.swift", "TenantManyCommands.swift", "Watching.swift",
    ]

    @Test func `What is printed past the formats is known`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        var (writers, followers): ([String: Int], Set<String>) = ([:], [])
        for folder in ["", "Commands", "Methods", "Shell"] {
            for (name, source) in try Self.sources(in: "/\(root)/Sources/postern/\(folder)") {
                if name == "Output.swift" || name == "Console.swift" { continue }
                let count = Self.count("console.print(", in: source) + Self.count("console.write(", in: source)
                if count > 0 { writers[name] = count }
                if Self.count(".printNext(", in: source) > 0 { followers.insert(name) }
            }
        }
        #expect(writers == Self.writers && followers == Self.followers, "does it keep what -o promises?")
    }

    private static func count(_ words: String, in source: String) -> Int {
        source.split(separator: words, omittingEmptySubsequences: false).count - 1
    }

    private static func sources(in folder: String) throws -> [(name: String, source: String)] {
        let directory = try #require(opendir(folder))
        defer { closedir(directory) }
        var found: [(name: String, source: String)] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(".swift") else { continue }
            found.append((name, String(decoding: try File.read("\(folder)/\(name)"), as: UTF8.self)))
        }
        return found
    }
}
