import Base
import JSON

/// postern store …: commands for a stopped server, on the machine that has its data.
enum StoreCommands {
    static let all = [verify]

    static let verify = Command(
        path: ["store", "verify"],
        summary: "Reads the whole store of a stopped server, and says what is damaged: records and event logs.",
        example: "store verify --data-directory /var/lib/postern",
        flags: ServerProgram.flags, isReadOnly: true
    ) { session in
        let program = ServerProgram(session.arguments)
        let ended = try program.run(["--verify-store"])
        guard [0, ServerProgram.damagedStatus].contains(ended.status) else {
            throw CommandError("\(program.path) could not verify the store; its own message tells why")
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

/// The report of posternd on a store.
private struct StoreVerification: Record {
    static let columns = ["sound", "lines"]

    let isSound: Bool
    let lines: [String]

    var id: String { isSound ? "sound" : "damaged" }
    var json: JSONValue { ["sound": .bool(isSound), "lines": .array(lines.map { .string(Text($0)) })] }
}
