import Base
import JSON

/// postern store …: what is done with the server stopped, on the machine where its data is.
enum StoreCommands {
    static let all = [verify]

    static let verify = Command(
        path: ["store", "verify"],
        summary: "Reads the whole store of a stopped server, and says what is damaged: records and event logs.",
        example: "store verify --data-directory /var/lib/postern",
        flags: [
            Flag("data-directory", "DIR", "the server's data (default: as posternd finds it)"),
            Flag("master-key-file", "FILE", "the server's master key (default: as posternd finds it)"),
            Flag("config", "FILE", "the server's configuration file"),
            Flag("posternd", "FILE", "the server's program (default: beside this one, else on PATH)"),
        ], isReadOnly: true
    ) { session in
        var words = ["--verify-store"]
        for name in ["data-directory", "master-key-file", "config"] {
            if let value = session.arguments.value(name) { words += ["--\(name)", value] }
        }
        let program = session.arguments.value("posternd") ?? LocalProgram.path(of: "posternd")
        let ended = try LocalProgram.run(program, words)
        guard [0, LocalProgram.damagedStatus].contains(ended.status) else {
            throw CommandError("\(program) could not verify the store; its own message tells why")
        }
        let report = StoreVerification(
            isSound: ended.status == 0, lines: ended.output.split(separator: "\n").map(String.init))
        if session.output.format == .table, !session.output.isQuiet {
            report.lines.forEach { session.console.print(Output.printable($0)) }
        } else {
            session.output.print(report)
        }
        guard report.isSound else { throw CommandError("the store is damaged", exitCode: .damaged) }
    }
}

/// What posternd found in a store.
private struct StoreVerification: Record {
    static let columns = ["sound", "lines"]

    let isSound: Bool
    let lines: [String]

    var id: String { isSound ? "sound" : "damaged" }
    var json: JSONValue { ["sound": .bool(isSound), "lines": .array(lines.map { .string(Text($0)) })] }
}
