import Base
import Glibc
import TestSupport
import Testing

@testable import postern

/// Flags of every command are refused where they would mean nothing.
@Suite struct UnusedFlagsTests {
    private static func refusal(_ words: [String]) -> CommandError? {
        do throws(CommandError) {
            _ = try CommandTree.match(words)
            return nil
        } catch {
            return error
        }
    }

    /// A command line with an operand wherever one has to be.
    private static func words(_ command: Command, _ flags: [String]) -> [String] {
        command.path + Array(repeating: "x", count: command.requiredOperandCount) + flags
    }

    /// Groups and commands that are not about one tenant: each new one is added here or takes --tenant.
    private static let groupsWithoutTenant: Set<String> = [
        "apikey", "whoami", "certificate", "service-account", "key", "server", "cluster", "store", "backup",
        "completion", "version", "help",
    ]
    private static let commandsWithoutTenant: Set<String> = [
        "tenant create", "tenant list", "audit key", "token decode", "rpc list", "rpc describe", "context list",
        "context use", "context rm", "context show",
    ]

    @Test func `A command that is not about one tenant takes no --tenant, and every other takes it`() {
        for command in CommandTree.commands {
            let refused = Self.refusal(Self.words(command, ["-t", "x"]))
            let isWithout =
                Self.groupsWithoutTenant.contains(command.path[0]) || Self.commandsWithoutTenant.contains(command.name)
            #expect((refused != nil) == isWithout, "\(command.name): \(refused?.message ?? "takes it")")
            // An empty tenant names none.
            #expect(Self.refusal(Self.words(command, ["-t", ""])) == nil, "\(command.name)")
        }
    }

    @Test(
        arguments: [
            ("tenant update --where all -t acme", "--where means many tenants, and --tenant one"),
            ("denials list --all-tenants -t acme", "--all-tenants means many tenants, and --tenant one"),
            ("token verify x --any-tenant -t acme", "--any-tenant means many tenants, and --tenant one"),
            ("-t acme revocations watch --any-tenant", "--any-tenant means many tenants, and --tenant one"),
            ("tenant get shop -t acme", "--tenant acme is another one than tenant shop"),
            ("tenant copy-settings acme shop -t acme", "--tenant acme is another one than tenant shop"),
            ("apikey list -t acme", "postern apikey list is not about one tenant, and takes no --tenant"),
            ("user export users -o csv", "postern user export prints no records, and takes no -o csv"),
            ("rpc call Users/List --fields uid", "postern rpc call prints no records, and takes no --fields"),
            ("help flags -o json", "postern help flags prints text, and takes no -o and no --fields"),
            ("user list -q --fields uid", "only ids are printed with -q and -o name, and no --fields"),
            ("user delete u1 --confirm u2", "postern user delete asks for no name, and takes no --confirm"),
            ("context show --context live", "postern context show uses no context, and takes no --context"),
        ])
    func `A flag that would mean nothing is refused`(line: String, message: String) {
        let refused = Self.refusal(line.split(separator: " ").map(String.init))
        #expect(refused?.message == message && refused?.exitCode == .usage, "\(refused?.message ?? "taken")")
    }

    @Test(
        arguments: [
            "-t acme tenant get acme", "-t acme tenant update acme --refresh-mode reuse",
            "tenant delete acme --confirm acme",
            "user export users -o json", "tenant delete acme -o ndjson -q", "user list -o csv --fields uid",
            "context add live --server a:1 -t acme", "audit verify file -t acme", "version -o json",
        ])
    func `A flag that says the same again, or only the form of a failure, is taken`(line: String) {
        let refused = Self.refusal(line.split(separator: " ").map(String.init))
        #expect(refused == nil, "\(refused?.message ?? "")")
    }

    @Test func `A tenant of the environment is for all commands, and is not refused`() async {
        for words in [["tenant", "update", "--where", "all", "--refresh-mode", "reuse", "-y"], ["apikey", "list"]] {
            let test = TestConsole(
                environment: ["HOME": "/nonexistent", "POSTERN_TENANT": "acme", "POSTERN_SERVER": "127.0.0.1:1"])
            #expect(await CommandLineTool.run(words, in: test.console) == .unavailable, "\(test.said)")
        }
    }

    @Test func `A call takes --tenant where its request has a place for it, and no other tenant`() async throws {
        try await withTemporaryDirectory { directory in
            let file = "\(directory)/request"
            writeFile(file, [UInt8](#"{"tenant_id":"shop"}"#.utf8))
            func call(_ words: String...) async -> (code: ExitCode, said: String) {
                let (test, globals) = (TestConsole(), ["-y", "--server", "127.0.0.1:1"])
                return (await CommandLineTool.run(["rpc", "call"] + words + globals, in: test.console), test.said)
            }
            let keys = await call("Project/ListApiKeys", "-t", "acme")
            #expect(keys.code == .usage && keys.said.contains("is not about one tenant"), "\(keys.said)")
            let other = await call("Users/Count", file, "-t", "acme")
            #expect(other.code == .usage && other.said.contains("--tenant acme is another one"), "\(other.said)")
            #expect(await call("Users/Count", file, "-t", "shop").code == .unavailable)
            #expect(await call("Users/Count", "-t", "acme").code == .unavailable)
        }
    }

    @Test func `A command takes --confirm exactly if it asks for a name`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let folder = "/\(root)/Sources/postern/Commands"
        for name in fileNames(in: folder) where name.hasSuffix(".swift") {
            let source = String(decoding: try File.read("\(folder)/\(name)"), as: UTF8.self)
            let asking = source.split(separator: "byName:", omittingEmptySubsequences: false).count
            let declared = source.split(separator: "asksForName: true", omittingEmptySubsequences: false).count
            #expect(asking == declared, "\(name)")
        }
    }
}
