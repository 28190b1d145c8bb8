import Base
import JSON

/// postern version and help: what the program knows without a server.
enum InformationCommands {
    static let all: [Command] = [version, exitCodes, flags, commands, reference]

    static let version = Command(
        path: ["version"], summary: "Prints this program's version.", example: "version", isReadOnly: true
    ) { session in
        guard session.output.isForPeople else { return session.output.print(ProgramVersion()) }
        session.console.write([UInt8](CommandLineTool.versionLine.utf8))
    }

    static let exitCodes = Command(
        path: ["help", "exit-codes"], summary: "Explains what the exit codes mean.", example: "help exit-codes",
        isReadOnly: true, prints: .text
    ) { session in
        let rows = ExitCode.allCases.map { (String($0.rawValue), $0.meaning) }
        session.console.write([UInt8](describe(rows).utf8))
    }

    static let flags = Command(
        path: ["help", "flags"], summary: "Explains the flags that every command takes.", example: "help flags",
        isReadOnly: true, prints: .text
    ) { session in
        session.console.write([UInt8](describe(GlobalFlags.all).utf8))
    }

    static let commands: Command = Command(
        path: ["help", "commands"], summary: "Lists every command, one a line, as manual pages are made of it.",
        example: "help commands", isReadOnly: true, prints: .text
    ) { session in
        for command in CommandTree.commands { session.console.print(command.name) }
    }

    static let reference: Command = Command(
        path: ["help", "reference"], summary: "Prints every command with its flags as one page.",
        example: "help reference", isReadOnly: true, prints: .text
    ) { session in
        session.console.print(CommandReference.markdown)
    }
}

private struct ProgramVersion: Record {
    static let columns = ["version"]

    var id: String { CommandLineTool.version }
    var json: JSONValue { ["version": .string(Text(CommandLineTool.version))] }
}
