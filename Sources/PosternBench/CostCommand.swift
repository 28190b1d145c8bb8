import Base
import JSON

/// `postern-bench cost`: what one request of each operation costs the server, each operation alone.
struct CostCommand {
    private let options: LoadOptions
    private let inFlight: Int
    private let seconds: Int
    private let format: OutputFormat
    private let allocationsPath: String?

    /// One operation's figures.
    struct Row {
        var name: String
        var result: RunResult
        /// Calls of malloc a request. Nil: they are not counted.
        var allocations: Double?
    }

    init(_ arguments: inout Arguments) throws {
        options = try LoadOptions(&arguments)
        guard options.mix.scenario == nil else {
            throw UsageError("cost: --mix names the operations, each is run alone")
        }
        inFlight = try arguments.number("--in-flight", default: 1, in: 1...4_096)
        seconds = try arguments.number("--seconds", default: 2, in: 1...3_600)
        format = try arguments.choice("-o", default: OutputFormat.table)
        allocationsPath = arguments.text("--allocations-file")
        try arguments.finish()
        guard options.target.process != nil else {
            throw BenchError(
                .notReady, "nothing on this machine listens on that port: cost needs the server's process, --server-pid"
            )
        }
    }

    func run() throws {
        Interruption.listen()
        var rows: [Row] = []
        for operation in options.mix.operations where !Interruption.isAsked {
            var single = options
            single.mix = try Mix(parsing: "\(operation.name)=1")
            let plan = RunPlan(loop: .closed(inFlight: inFlight, think: .zero), warmup: 1, seconds: seconds)
            let session = try LoadSession(single, slotsPerLane: inFlight)
            session.announce("cost", plan)
            let allocations = try allocationsPath.map { try AllocationCounter($0) }
            let result = session.run(plan, allocations)
            try session.saveSessions()
            rows.append(
                Row(name: operation.name, result: result, allocations: result.server?.allocationsPerRequest(result)))
        }
        try TextFile.printOut(format == .table ? Self.table(rows) : Self.json(rows))
        // Failed requests make the figures look cheap.
        for row in rows { try row.result.check(failuresMaxPercent: 0) }
        if Interruption.isAsked { throw BenchError(.interrupted, "interrupted: not all operations were measured") }
    }

    static func table(_ rows: [Row]) -> String {
        var text = line("operation", ["server µs", "allocations", "per second", "load µs"])
        for row in rows {
            text += line(
                row.name,
                [
                    row.result.cpuMicrosecondsPerRequest.map { decimal($0, places: 2) } ?? "unknown",
                    row.allocations.map { decimal($0, places: 1) } ?? "unknown",
                    decimal(row.result.achieved, places: 0), decimal(row.result.loadMicrosecondsPerRequest, places: 2),
                ])
        }
        return text + (rows.last.map { $0.result.hashes.description + "\n" } ?? "")
    }

    private static func line(_ name: String, _ cells: [String]) -> String {
        cells.reduce(padded(name, to: 14)) { $0 + padded($1, to: -12) } + "\n"
    }

    static func json(_ rows: [Row]) -> String {
        let operations = rows.map { row -> JSONValue in
            .object([
                .init("name", .string(Text(row.name))),
                .init(
                    "cpu_microseconds_per_request", row.result.cpuMicrosecondsPerRequest.map { .double($0) } ?? .null),
                .init("allocations_per_request", row.allocations.map { .double($0) } ?? .null),
                .init("requests_per_second", .double(row.result.achieved)),
                .init("load_cpu_microseconds_per_request", .double(row.result.loadMicrosecondsPerRequest)),
            ])
        }
        let all: JSONValue = .object([
            .init("hashes", .string(Text(rows.last?.result.hashes.name ?? "unknown"))),
            .init("operations", .array(operations)),
        ])
        return String(decoding: all.prettyPrinted(), as: UTF8.self) + "\n"
    }
}
