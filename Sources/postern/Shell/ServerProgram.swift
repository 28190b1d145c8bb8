import Base
import JSON

/// posternd on this machine, for work on the data of a stopped server.
struct ServerProgram {
    /// The exit status of posternd when it has found damage (docs/operations.md).
    static let damagedStatus: Int32 = 65

    /// The flags of a command that runs posternd.
    static let flags =
        settings + [Flag("posternd", "FILE", "the server's program (default: beside this one, else on PATH)")]

    /// The flags that posternd has as well.
    private static let settings = [
        Flag("data-directory", "DIR", "the server's data (default: as posternd finds it)"),
        Flag("master-key-file", "FILE", "the server's master key (default: as posternd finds it)"),
        Flag("config", "FILE", "the server's configuration file"),
    ]

    let path: String
    private let settings: [String]

    init(_ arguments: Arguments) {
        path = arguments.value("posternd") ?? LocalProgram.path(of: "posternd")
        settings = Self.settings.flatMap { flag in
            arguments.value(flag.name).map { ["--\(flag.name)", $0] } ?? []
        }
    }

    /// Runs posternd to its end, and returns what it wrote to standard output.
    func run(_ action: [String]) throws(CommandError) -> ServerReport {
        let ended = try LocalProgram.run(path, action + settings)
        return ServerReport(status: ended.status, lines: ended.output.split(separator: "\n").map(String.init))
    }
}

/// The report of posternd on a store or a backup.
struct ServerReport: Record {
    static let columns = ["sound", "lines"]

    let status: Int32
    var lines: [String]

    var isSound: Bool { status == 0 }
    /// False if posternd failed before it knew.
    var isVerdict: Bool { isSound || status == ServerProgram.damagedStatus }

    var id: String { isSound ? "sound" : "damaged" }
    var json: JSONValue { ["sound": .bool(isSound), "lines": .array(lines.map { .string(Text($0)) })] }
}

extension Output {
    /// For people the lines as posternd wrote them, in the other formats a record.
    func printLines(of report: ServerReport) {
        guard isForPeople else { return print(report) }
        for line in report.lines { console.print(Self.printable(line)) }
    }
}
