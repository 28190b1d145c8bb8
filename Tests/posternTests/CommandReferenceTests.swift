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

    @Test func `Every method has a command, or a reason why it has none`() {
        let commands = Set(CommandTree.commands.map(\.name))
        let methods = ProtocolSchema.shared.methods.map(\.fullName)
        for method in methods {
            switch MethodCoverage.of(method) {
            case .command(let names):
                #expect(!names.isEmpty && commands.isSuperset(of: names), "\(method)")
            case .noCommand(let reason): #expect(reason.count > 10, "\(method)")
            case nil: Issue.record("\(method): say in MethodCoverage which command it has, or why it has none")
            }
        }
        let known = Set(methods.map { $0.replacing("postern.v1.", with: "") })
        #expect(known.isSuperset(of: MethodCoverage.all.keys), "a method is gone")
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
