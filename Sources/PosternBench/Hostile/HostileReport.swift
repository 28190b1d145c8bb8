import Base
import JSON

/// The result of a run of `postern-bench hostile`: the canary's figures, and the answers to the attacks.
struct HostileReport {
    let canary: [(name: String, outcome: Outcome)]
    let attacks: [(name: String, answers: [(answer: String, count: Int)])]

    /// The hashes of both tenants, which `HostileScene` makes like real ones.
    private static let hashes = Hashes.production
    private static let shares = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)]

    func printed(as format: OutputFormat) -> String {
        format == .table ? table : String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n"
    }

    /// Fails when a request of the canary failed, or its p99 over all requests is above the bound.
    func check(slowestMilliseconds: Int) throws(BenchError) {
        let errorCount = canary.reduce(0) { $0 + $1.outcome.errorCount }
        guard errorCount == 0 else { throw BenchError(.regression, "\(errorCount) requests of the canary failed") }
        guard !total.isEmpty else { throw BenchError(.failed, "no request of the canary was answered") }
        // Without attacks every server would pass. The server may refuse one of them altogether.
        let unreached = [Answers.notConnected, Answers.refusedOrClosed]
        guard !attacks.allSatisfy({ $0.answers.allSatisfy { unreached.contains($0.answer) } }) else {
            throw BenchError(.failed, "no attack reached the server: this proves nothing")
        }
        let p99 = total.value(atShare: 0.99)
        guard p99 <= UInt64(slowestMilliseconds) * 1_000_000 else {
            throw BenchError(
                .regression,
                "the canary's p99 is \(Self.milliseconds(p99)) ms, above \(slowestMilliseconds) ms")
        }
    }

    private var total: Histogram {
        var total = Histogram()
        for (_, outcome) in canary { total.merge(outcome.latency) }
        return total
    }

    private var table: String {
        var text =
            padded("canary", to: 16)
            + ["ok", "errors", "p50 ms", "p99 ms", "max ms"].map { padded($0, to: -10) }
            .joined() + "\n"
        var all = Outcome()
        for (name, outcome) in canary {
            text += row(name, outcome)
            all.merge(outcome)
        }
        text += row("all", all)
        for (name, answers) in attacks {
            let shown = answers.prefix(6).map { "\($0.answer) \($0.count)" }.joined(separator: ", ")
            text += "\(name): \(shown.isEmpty ? "nothing was answered" : shown)\n"
        }
        text += "\(Self.hashes)\n"
        return text
    }

    private func row(_ name: String, _ outcome: Outcome) -> String {
        var text =
            padded(name, to: 16) + padded("\(outcome.okCount)", to: -10) + padded("\(outcome.errorCount)", to: -10)
        for (_, share) in Self.shares {
            text += padded(Self.milliseconds(outcome.latency.value(atShare: share)), to: -10)
        }
        text += "\n"
        for (reason, count) in outcome.errors.sorted(by: { $0.key < $1.key }) {
            text += "  \(name): \(reason) \(count)\n"
        }
        return text
    }

    private var json: JSONValue {
        .object([
            .init("hashes", .string(Text(Self.hashes.rawValue))),
            .init("canary", .array(canary.map { Self.json(of: $0.name, $0.outcome) })),
            .init(
                "attacks",
                .array(
                    attacks.map { name, answers in
                        .object([
                            .init("name", .string(Text(name))),
                            .init(
                                "answers",
                                .object(answers.map { .init(Text($0.answer), .integer(Int64($0.count))) })),
                        ])
                    })),
        ])
    }

    private static func json(of name: String, _ outcome: Outcome) -> JSONValue {
        .object([
            .init("name", .string(Text(name))), .init("ok", .integer(Int64(outcome.okCount))),
            .init("errors", .object(outcome.errors.map { .init(Text($0.key), .integer(Int64($0.value))) })),
            .init(
                "latency_milliseconds",
                .object(
                    shares.map { name, share in
                        .init(Text(name), .double(Double(outcome.latency.value(atShare: share)) / 1e6))
                    })),
        ])
    }

    private static func milliseconds(_ nanoseconds: UInt64) -> String {
        decimal(Double(nanoseconds) / 1e6, places: 2)
    }
}
