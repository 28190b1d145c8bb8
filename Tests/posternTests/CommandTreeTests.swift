import Base
import Glibc
import Testing

@testable import postern

@Suite struct CommandTreeTests {
    private func match(_ line: String) throws -> (Command, Arguments) {
        guard
            case .command(let command, let arguments) = try CommandTree.match(
                line.split(separator: " ").map(String.init))
        else { throw CommandError("this is help") }
        return (command, arguments)
    }

    @Test func `A command is found by its words, with operands and flags in any order behind it`() throws {
        let (command, arguments) = try match("tenant update acme --disabled-user-signup true")
        #expect(command.path == ["tenant", "update"])
        #expect(arguments.operands == ["acme"])
        #expect(arguments.values == ["disabled-user-signup": "true"])
        let (_, turned) = try match("tenant update --disabled-user-signup=true acme")
        #expect(turned == arguments)
    }

    @Test func `Global flags stand anywhere, long or short`() throws {
        let (_, before) = try match("--tenant acme -o json user list")
        let (_, behind) = try match("user list -t acme --output=json")
        #expect(before == behind)
        #expect(before.values == ["tenant": "acme", "output": "json"])
    }

    @Test func `A dash alone is an operand, two end the flags`() throws {
        #expect(try match("token verify -").1.operands == ["-"])
        #expect(try match("token verify -- -x.y.z").1.operands == ["-x.y.z"])
        let keyID = "-" + String(repeating: "k", count: 42)
        #expect(try match("service-account key revoke shop \(keyID) --quiet").1.operands == ["shop", keyID])
        let flags = CommandTree.commands.flatMap(\.allFlags) + GlobalFlags.all
        #expect(flags.allSatisfy { $0.name.utf8.count + 2 <= CommandTree.flagByteCountMax })
    }

    @Test func `Every flag of a command with operands is a flag, also one with a digit in its name`() throws {
        let flagged = CommandTree.commands.filter { !$0.operands.isEmpty }
        for command in flagged {
            // Flags of every command may mean nothing here, and are refused then (UnusedFlagsTests).
            for flag in command.flags where flag.placeholder != nil {
                let operands = command.operands.map { _ in "x" }
                let words = command.path + operands + ["--\(flag.name)", "1"]
                guard case .command(_, let arguments) = try CommandTree.match(words) else {
                    Issue.record("\(words)")
                    continue
                }
                #expect(arguments.operands == operands && arguments.values[flag.name] == "1", "\(words)")
            }
        }
    }

    /// Key ids have 22 characters of base64url, as the server makes them: one in 64 begins with a dash, one in 4,096
    /// with two.
    @Test(arguments: ["-", "--"])
    func `A key's id that begins with a dash is an operand`(dashes: String) throws {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        for _ in 0..<1_000 {
            let rest = (dashes.count..<22).map { _ in alphabet[Int.random(in: 0..<64)] }
            let keyID = dashes + String(rest)
            let words = ["service-account", "key", "revoke", "shop", keyID, "--yes"]
            guard case .command(_, let arguments) = try CommandTree.match(words) else {
                Issue.record("\(keyID)")
                continue
            }
            #expect(arguments.operands == ["shop", keyID] && arguments.isSet("yes"), "\(keyID)")
        }
    }

    @Test(
        arguments: [
            ("user delete u1 -yes", "postern user delete has no flag -yes", "did you mean --yes?"),
            (
                "user delete -u", "postern user delete has no flag -u",
                "what begins with a dash and is no flag goes behind --"
            ),
            ("tenat list", "postern has no command tenat", "did you mean postern tenant?"),
            ("tenant lst", "postern tenant has no command lst", "did you mean postern tenant list?"),
            ("tenant list --limt 3", "postern tenant list has no flag --limt", "did you mean --limit?"),
            ("--tennant a user list", "there is no global flag --tennant", "did you mean --tenant?"),
            ("frobnicate", "postern has no command frobnicate", "postern --help lists the commands"),
            ("tenant delete", "<tenant-id> is missing", "postern tenant delete acme --confirm=acme"),
            ("tenant get a b", "\"b\" is one word too many", "postern tenant get [tenant-id]"),
            ("user list --limit", "--limit needs a value", nil),
            ("user list --limit 1 --limit 2", "--limit is given twice", nil),
            ("user list --quiet=yes", "--quiet takes no value", nil),
            ("user list --validate-only", "postern user list cannot --dry-run", nil),
        ] as [(String, String, String?)])
    func `A wrong command line says what is wrong and what was meant`(
        line: String, message: String, hint: String?
    ) throws {
        let error = #expect(throws: CommandError.self) { try match(line) }
        #expect(error?.message == message)
        #expect(error?.hint == hint)
        #expect(error?.exitCode == .usage)
    }

    @Test func `Every command has help with its example first, and the example is one of its own command lines`() throws
    {
        for command in CommandTree.commands {
            guard case .help(let text) = try CommandTree.match(command.path + ["--help"]) else {
                Issue.record("\(command.name) has no help")
                continue
            }
            #expect(text.hasPrefix(command.summary))
            #expect(text.contains("postern \(command.example)"))
            let words = command.example.split(separator: " ").map(String.init)
            #expect(words.joined(separator: " ").contains(command.name), "\(command.name)")
        }
        #expect(Set(CommandTree.commands.map(\.name)).count == CommandTree.commands.count)
    }

    @Test func `Every command that is written is in the tree`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        // The commands that describe the other commands stand beside the tree.
        let written = try ["/\(root)/Sources/postern", "/\(root)/Sources/postern/Commands"]
            .map(Self.commandCount).reduce(0, +)
        #expect(written == CommandTree.commands.count, "a command is missing in the `all` of its file")
    }

    private static func commandCount(inFilesOf folder: String) throws -> Int {
        var written = 0
        let directory = try #require(opendir(folder))
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(".swift") else { continue }
            let source = String(decoding: try File.read("\(folder)/\(name)"), as: UTF8.self)
            let here = source.split(separator: "= Command(\n", omittingEmptySubsequences: false).count - 1
            let found = source.split(separator: "path: [\"", omittingEmptySubsequences: false).count - 1
            #expect(here == found, "\(name): a command is `static let name = Command(` and `path:` on the next line")
            written += here
        }
        return written
    }

    @Test func `Every group is explained`() {
        #expect(Set(CommandTree.commands.map { $0.path[0] }).union(["help"]) == Set(CommandTree.groups.map(\.0)))
    }

    @Test func `No command hides a global flag`() {
        let globals = Set(GlobalFlags.all.map(\.name))
        for command in CommandTree.commands {
            #expect(globals.isDisjoint(with: command.flags.map(\.name)), "\(command.name)")
        }
    }

    @Test(arguments: ["tenant update", "tenant", "user import", "whoami"])
    func `Help of a command is asked for before its name, too`(name: String) throws {
        let words = name.split(separator: " ").map(String.init)
        guard case .help(let before) = try CommandTree.match(["help"] + words),
            case .help(let behind) = try CommandTree.match(words + ["--help"])
        else {
            Issue.record("no help")
            return
        }
        #expect(before == behind)
        #expect(throws: CommandError.self) { try CommandTree.match(["help", "frobnicate"]) }
    }

    @Test(arguments: [[], ["-h"], ["--help"], ["help"]])
    func `Without a command there is an overview`(words: [String]) async {
        let test = TestConsole()
        #expect(await CommandLineTool.run(words, in: test.console) == .ok)
        #expect(test.written.contains("postern tenant create acme"))
        #expect(test.said.isEmpty)
    }

    @Test func `The version is told by a flag as by a command`() async {
        let flag = TestConsole()
        let command = TestConsole()
        #expect(await flag.run("--version") == .ok)
        #expect(await command.run("version") == .ok)
        #expect(flag.written == "postern \(CommandLineTool.version)\n" && command.written == flag.written)
    }

    @Test func `A group alone lists its commands`() async {
        let test = TestConsole()
        #expect(await test.run("apikey", "-h") == .ok)
        #expect(test.written.contains("apikey revoke <api-key-id>"))
        #expect(await test.run("apikey") == .usage)
    }
}
