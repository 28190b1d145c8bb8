import Base
import JSON

/// How a command prints what it found.
enum OutputFormat: String, CaseIterable {
    case table
    case json
}

/// What a run came to.
struct Report {
    /// What was asked for: flags and their values, the defaults as well.
    var configuration: [(name: Text, value: JSONValue)]
    var hashes: Hashes
    var seconds: Double
    /// In the order of the mix.
    var operations: [(operation: Operation, outcome: Outcome)]
    var connectionsLost: Int
    /// Of an open loop.
    var lag: Lag?
    /// CPU time while it counted: of this process, and of everything on the machine.
    var generatorCPUMicroseconds: Int
    var machineCPUMicroseconds: Int
    /// Before and after; nil when the server's process is not known.
    var server: (before: ServerProcess.Usage, after: ServerProcess.Usage)?

    private static let shares: [(name: StaticString, share: Double)] = [
        ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("max", 1),
    ]

    /// Answers of either kind: the server worked for both.
    var answerCount: Int { operations.reduce(0) { $0 + $1.outcome.okCount + $1.outcome.errorCount } }

    var serverCPUMicroseconds: Int? { server.map { $0.after.cpuMicroseconds - $0.before.cpuMicroseconds } }

    /// CPUs that neither server nor load had: what else ran, and how far to trust the figures. The server's own
    /// share counts as others' when its process is not known.
    private var otherCPUShare: Double {
        max(0, Double(machineCPUMicroseconds - generatorCPUMicroseconds - (serverCPUMicroseconds ?? 0)) / 1e6 / seconds)
    }

    /// Fails when nothing went well, or more answers failed than are allowed: figures over failures look fast.
    func check(failuresMaxPercent: Int) throws(BenchError) {
        let failures = operations.reduce(0) { $0 + $1.outcome.errorCount }
        guard failures < answerCount else { throw BenchError(.failed, "nothing went well") }
        guard failures * 100 > answerCount * failuresMaxPercent else { return }
        throw BenchError(
            .failed,
            "\(failures) of \(answerCount) answers failed; --failures-max PERCENT says how many may (now "
                + "\(failuresMaxPercent))")
    }

    func printed(as format: OutputFormat) -> String {
        switch format {
        case .table: table
        case .json: String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n"
        }
    }

    private var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("configuration", .object(configuration.map { .init($0.name, $0.value) })),
            .init("hashes", .string(Text(hashes.rawValue))), .init("seconds", .double(seconds)),
            .init("operations", .array(operations.map { json(of: $0.operation, $0.outcome) })),
            .init("connections_lost", .integer(Int64(connectionsLost))),
            .init("generator_cpu_share", .double(Double(generatorCPUMicroseconds) / 1e6 / seconds)),
            .init("other_cpu_share", .double(otherCPUShare)),
        ]
        if let lag {
            members.append(.init("sent_late", .integer(Int64(lag.lateCount))))
            members.append(.init("not_sent", .integer(Int64(lag.unsentCount))))
        }
        if let server, let cpu = serverCPUMicroseconds {
            members.append(
                .init(
                    "server",
                    .object([
                        .init("cpu_share", .double(Double(cpu) / 1e6 / seconds)),
                        .init("cpu_microseconds_per_request", .double(Double(cpu) / Double(max(1, answerCount)))),
                        .init("resident_bytes", .integer(Int64(server.after.residentByteCount))),
                        .init("anonymous_bytes", .integer(Int64(server.after.anonymousByteCount))),
                    ])))
        }
        return .object(members)
    }

    private func json(of operation: Operation, _ outcome: Outcome) -> JSONValue {
        var latency = Self.shares.map { name, share in
            JSONValue.Member(Text(stringLiteral: name), .double(Double(outcome.latency.value(atShare: share)) / 1000))
        }
        latency.append(.init("mean", .double(outcome.latency.mean / 1000)))
        let errors = outcome.errors.sorted { $0.key < $1.key }
        return .object([
            .init("name", .string(Text(operation.name))),
            .init("requests_per_second", .double(Double(outcome.okCount) / seconds)),
            .init("ok", .integer(Int64(outcome.okCount))),
            .init("errors", .object(errors.map { .init(Text($0.key), .integer(Int64($0.value))) })),
            .init("latency_microseconds", .object(latency)),
        ])
    }

    private var table: String {
        var text = Self.row("operation", ["per second", "errors", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"])
        for (operation, outcome) in operations {
            let latencies = Self.shares.map {
                decimal(Double(outcome.latency.value(atShare: $0.share)) / 1000, places: 0)
            }
            text += Self.row(
                operation.name,
                [decimal(Double(outcome.okCount) / seconds, places: 0), "\(outcome.errorCount)"] + latencies)
        }
        for (operation, outcome) in operations {
            for (reason, count) in outcome.errors.sorted(by: { $0.key < $1.key }) {
                text += "  \(operation.name): \(reason) \(count)\n"
            }
        }
        if connectionsLost > 0 { text += "connections lost: \(connectionsLost)\n" }
        if let lag {
            text += "open loop: \(lag.lateCount) sent late, \(lag.unsentCount) not sent\n"
        }
        if let server, let cpu = serverCPUMicroseconds {
            text += "server: \(decimal(Double(cpu) / Double(max(1, answerCount)), places: 2)) µs of CPU a request, "
            text += "\(decimal(Double(cpu) / 1e6 / seconds, places: 2)) CPUs, "
            text += "RSS \(server.after.residentByteCount / 1024) KiB, "
            text += "RssAnon \(server.after.anonymousByteCount / 1024) KiB\n"
        }
        text += "\(hashes)\n"
        return text + "load: \(decimal(Double(generatorCPUMicroseconds) / 1e6 / seconds, places: 2)) CPUs, "
            + "everything else: \(decimal(otherCPUShare, places: 2)) CPUs\n"
    }

    private static func row(_ name: String, _ cells: [String]) -> String {
        cells.reduce(padded(name, to: 14)) { $0 + padded($1, to: -11) } + "\n"
    }
}

/// With spaces on the right; a negative width puts them on the left.
func padded(_ text: String, to width: Int) -> String {
    let spaces = String(repeating: " ", count: max(0, abs(width) - text.count))
    return width < 0 ? spaces + text : text + spaces
}

/// A number that is not negative with this many digits behind the point.
func decimal(_ value: Double, places: Int) -> String {
    var scale = 1
    for _ in 0..<places { scale *= 10 }
    let rounded = Int((value * Double(scale)).rounded())
    if places == 0 { return String(rounded) }
    let digits = String(rounded % scale)
    return "\(rounded / scale)." + String(repeating: "0", count: places - digits.count) + digits
}
