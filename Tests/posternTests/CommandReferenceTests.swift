import Base
import Testing

@testable import postern

/// What the program says of itself, compared with the program and the protocol.
@Suite struct CommandReferenceTests {
    @Test func `docs/cli.md is what the program prints`() throws {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let page = String(decoding: try File.read("/\(root)/docs/cli.md"), as: UTF8.self)
        #expect(page == CommandReference.markdown + "\n", "postern help reference > docs/cli.md")
    }

    @Test func `Every method has a command, or its proto says why it has none`() {
        let methods = ProtocolSchema.shared.methods
        for method in methods {
            let (commands, reason) = (method.commands.map(\.name), method.reasonForNoCommand)
            #expect(
                !commands.isEmpty || reason != nil,
                """
                \(method.fullName): name it in the `methods` of a command, or say in its proto why its stub is enough: \
                option (stub_only)
                """)
            #expect(
                commands.isEmpty || reason == nil,
                "\(method.fullName) has \(commands): take stub_only out of its proto")
            if let reason { #expect(reason.count > 10, "\(method.fullName)") }
        }
        let known = Set(methods.map { $0.fullName.replacing("postern.v1.", with: "") })
        for command in CommandTree.commands {
            let gone = Set(command.methods).subtracting(known)
            #expect(gone.isEmpty, "\(command.name): no method has this name")
        }
    }

    @Test func `A command takes --dry-run exactly if a method of it takes validate_only`() {
        let schema = ProtocolSchema.shared
        for command in CommandTree.commands where !command.isReadOnly && !command.methods.isEmpty {
            let requests = schema.methods.filter { method in
                command.methods.contains(method.fullName.replacing("postern.v1.", with: ""))
            }
            let isTriable = requests.contains { method in
                schema.messages[method.request]?.fields.contains { $0.name == "validate_only" } == true
            }
            #expect(command.isValidatable == isTriable, "\(command.name)")
        }
    }

    @Test func `Every command is in the reference and among the names for manual pages`() async {
        let test = TestConsole()
        #expect(await test.run("help", "commands") == .ok)
        #expect(test.written.split(separator: "\n").map(String.init) == CommandTree.commands.map(\.name))
        for command in CommandTree.commands {
            #expect(CommandReference.markdown.contains("### postern \(command.name)\n"))
        }
    }
}
