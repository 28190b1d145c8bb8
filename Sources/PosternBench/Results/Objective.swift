import Base
import JSON

/// A bound that a run has to keep: `sign-in.p99<50ms`, `service.p50<1ms`, `error_rate<0.1%`, `achieved_rate>99%`.
struct Objective: Sendable, CustomStringConvertible {
    /// The three latencies.
    enum Latency: String, CaseIterable {
        case response
        case service
        case lag
    }

    enum Metric: Sendable {
        /// Nil is the mean.
        case latency(Latency, share: Double?)
        /// Failed and unsent requests among all.
        case errorRate
        /// The achieved share of the rate that was asked for.
        case achievedRate
        /// Answers a second that went well.
        case rate
    }

    struct Verdict: Sendable {
        var objective: String
        var measured: String
        var holds: Bool
    }

    let description: String
    /// Nil: all operations together.
    let operation: String?
    let metric: Metric
    let isUpperBound: Bool
    /// Nanoseconds, a share or a rate.
    let bound: Double

    static let countMax = 64

    /// Parses several objectives, with commas between them. `operations` are those of the run.
    static func parse(_ text: String, operations: [String], isOpenLoop: Bool) throws(UsageError) -> [Objective] {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count <= countMax else { throw UsageError("--slo: at most \(countMax) objectives") }
        return try parts.map { part throws(UsageError) in
            try Objective(String(part), operations: operations, isOpenLoop: isOpenLoop)
        }
    }

    private init(_ text: String, operations: [String], isOpenLoop: Bool) throws(UsageError) {
        let text = String(text.filter { $0 != " " })
        guard let sign = text.firstIndex(where: { $0 == "<" || $0 == ">" }) else {
            throw UsageError("--slo: \"\(text)\" needs < or > and a bound, as in sign-in.p99<50ms")
        }
        description = text
        isUpperBound = text[sign] == "<"
        var names = text[..<sign].split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        // p99.9 has a dot of its own.
        if names.count > 1, names[names.count - 2] == "p99", let digits = names.last, Int(digits) != nil {
            names.removeLast(2)
            names.append("p99." + digits)
        }
        // `signin` is as good as `sign-in`.
        let known = operations.first { $0 == names.first || $0.filter { $0 != "-" } == names.first }
        if known != nil { names.removeFirst() }
        operation = known
        metric = try Self.metric(names, text, operations)
        let boundText = String(text[text.index(after: sign)...])
        guard let bound = Self.bound(boundText, of: metric) else {
            throw UsageError("--slo: \"\(text)\": \"\(boundText)\" is no bound for it; 50ms, 0.1% and 4900 are bounds")
        }
        self.bound = bound
        if case .achievedRate = metric, !isOpenLoop {
            throw UsageError("--slo: achieved_rate is a share of --rate; without it, rate>N is meant")
        }
        if case .latency(let latency, _) = metric, latency != .response, !isOpenLoop {
            throw UsageError("--slo: \(latency.rawValue) needs an open loop: --rate")
        }
    }

    private static func metric(_ names: [String], _ text: String, _ operations: [String]) throws(UsageError) -> Metric {
        var names = names
        var latency = Latency.response
        if names.count == 2, let named = Latency(rawValue: names[0]) {
            latency = named
            names.removeFirst()
        }
        if names.count == 1 {
            switch names[0] {
            case "error_rate": return .errorRate
            case "achieved_rate": return .achievedRate
            case "rate": return .rate
            case "mean": return .latency(latency, share: nil)
            case "max": return .latency(latency, share: 1)
            default:
                if names[0].hasPrefix("p"), let percent = Double(names[0].dropFirst()), percent > 0, percent <= 100 {
                    return .latency(latency, share: percent / 100)
                }
            }
        }
        throw UsageError(
            """
            --slo: "\(text)" names no metric of this run: [OPERATION.][response.|service.|lag.]p50 (any percentile), \
            mean or max; error_rate, rate, achieved_rate; the operations are \(operations.joined(separator: ", "))
            """)
    }

    private static func bound(_ text: String, of metric: Metric) -> Double? {
        let units: [(name: String, factor: Double)]
        switch metric {
        case .latency: units = [("ns", 1), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]
        case .errorRate, .achievedRate: units = [("%", 0.01)]
        case .rate: units = [("/s", 1), ("", 1)]
        }
        guard let unit = units.first(where: { text.hasSuffix($0.name) }),
            let number = Double(text.dropLast(unit.name.count)), number.isFinite, number >= 0
        else { return nil }
        return number * unit.factor
    }

    func verdict(on result: RunResult) -> Verdict {
        let chosen = result.operations.filter { operation == nil || $0.name == operation }
        let value: Double
        let shown: String
        switch metric {
        case .latency(let latency, let share):
            var histogram = Histogram()
            for operation in chosen { histogram.merge(operation.record[keyPath: Self.path(latency)]) }
            // Without an answer there is no latency that could hold.
            value = histogram.isEmpty ? .infinity : share.map { Double(histogram.value(atShare: $0)) } ?? histogram.mean
            shown = histogram.isEmpty ? "no answers" : "\(decimal(value / 1e6, places: 3)) ms"
        case .errorRate:
            let errors = chosen.reduce(0) { $0 + $1.record.errorCount }
            let answers = chosen.reduce(0) { $0 + $1.record.okCount } + errors
            value = operation == nil ? result.errorShare : Double(errors) / Double(max(1, answers))
            shown = "\(decimal(value * 100, places: 3))%"
        case .achievedRate:
            value = result.achievedShare ?? 0
            shown = "\(decimal(value * 100, places: 2))%"
        case .rate:
            value = chosen.reduce(0) { $0 + result.rate(of: $1) }
            shown = "\(decimal(value, places: 1))/s"
        }
        return Verdict(objective: description, measured: shown, holds: isUpperBound ? value < bound : value > bound)
    }

    private static func path(_ latency: Latency) -> KeyPath<OperationRecord, Histogram> {
        switch latency {
        case .response: \.response
        case .service: \.service
        case .lag: \.scheduleLag
        }
    }
}

extension Objective.Verdict {
    var json: JSONValue {
        .object([
            .init("objective", .string(Text(objective))), .init("measured", .string(Text(measured))),
            .init("holds", .bool(holds)),
        ])
    }

    init?(json: JSONValue) {
        guard let objective = json["objective"]?.string, let measured = json["measured"]?.string,
            let holds = json["holds"]?.bool
        else { return nil }
        self.init(objective: objective, measured: measured, holds: holds)
    }
}
