import Base
import Glibc
import JSON

/// Two results, or two groups of results of the same load, against each other.
///
/// A difference counts when it is larger than the threshold and than the noise of the figures: three standard
/// deviations of the difference. One result on a side is cut into blocks of its series, which show how the figure moved
/// within the run; a whole run may be off by as much. With three results on a side or more, their own spread counts; if
/// they were measured in turn, the spread of the ratios within the pairs counts (`ResultPairs`).
struct Comparison {
    enum Change: String {
        case same
        case better
        case worse
        /// Beyond the threshold, but within the noise.
        case unclear
    }

    struct Row {
        var what: String
        var unit: String
        var before: Double
        var after: Double
        /// As a share of `before`. For pairs, the median of the pairs' differences, which need not be that of the
        /// medians.
        var difference: Double
        /// The difference that had to be exceeded, as a share of `before`.
        var needed: Double
        var change: Change
    }

    let rows: [Row]
    /// The reasons why the two sides may not be comparable.
    let remarks: [String]

    var regressions: [Row] { rows.filter { $0.change == .worse } }

    static let blockCount = 10
    static let deviations = 3.0
    /// If the times that a cache line takes between the processors differ by more, the host moved the processors, and
    /// all costs are different.
    static let distanceRatioMax = 1.5

    /// `threshold` is a share: 0.05 is five percent.
    init(_ before: [RunResult], _ after: [RunResult], threshold: Double) throws(BenchError) {
        guard let first = before.first, let second = after.first else {
            throw BenchError(.notReady, "nothing to compare")
        }
        let names = first.operations.map(\.name)
        guard names == second.operations.map(\.name),
            (before + after).allSatisfy({ $0.operations.count == names.count })
        else { throw BenchError(.notReady, "the results are of different operations: they cannot be compared") }
        remarks = Self.remarks(before + after)
        let pairs = ResultPairs(before, after)
        // `ResultPairs` leaves out pairs within which the host moved the processors.
        let isMoved = pairs == nil && Self.isMoved(before, after)
        rows = Figure.all(names, isOpenLoop: first.isOpenLoop).compactMap { figure in
            Self.row(figure, before, after, pairs, threshold: threshold, isMoved: isMoved)
        }
    }

    private static func row(
        _ figure: Figure, _ before: [RunResult], _ after: [RunResult], _ pairs: ResultPairs?, threshold: Double,
        isMoved: Bool
    ) -> Row? {
        guard let first = Samples(figure, before), let second = Samples(figure, after), first.middle > 0 else {
            return nil
        }
        var deviation = (first.variance + second.variance).squareRoot() / first.middle
        var difference = second.middle / first.middle - 1
        var isKnown = !isMoved
        if let pairs {
            let ratio = pairs.ratio(of: figure)
            if let ratio { (difference, deviation) = (exp(ratio.middle) - 1, ratio.deviation) }
            isKnown = ratio != nil
        }
        let needed = max(threshold, deviations * deviation)
        let worsening = difference * (figure.isBetterWhenHigher ? -1 : 1)
        let change: Change =
            if abs(difference) <= threshold { .same } else if abs(difference) <= needed || !isKnown {
                .unclear
            } else if worsening > 0 { .worse } else { .better }
        return Row(
            what: figure.name, unit: figure.unit, before: first.middle, after: second.middle, difference: difference,
            needed: needed, change: change)
    }

    static func distance(_ result: RunResult) -> Double? {
        result.host.first { $0.name == "core_distance_nanoseconds" }?.value.double
    }

    private static func isMoved(_ before: [RunResult], _ after: [RunResult]) -> Bool {
        let (first, second) = (before.compactMap(distance), after.compactMap(distance))
        guard let least = first.min(), let most = first.max(), let otherLeast = second.min(),
            let otherMost = second.max()
        else { return false }
        return otherLeast > most * distanceRatioMax || least > otherMost * distanceRatioMax
    }

    private static func remarks(_ results: [RunResult]) -> [String] {
        guard let first = results.first else { return [] }
        var remarks: [String] = []
        let ignored: Set<String> = ["seed", "server", "sessions"]
        for member in first.configuration where !ignored.contains(member.name.string) {
            let others = results.filter { result in
                result.configuration.first { $0.name == member.name }?.value != member.value
            }
            if !others.isEmpty { remarks.append("not the same load: \(member.name) differs") }
        }
        let distances = results.compactMap(distance)
        if let least = distances.min(), let most = distances.max(), most > least * distanceRatioMax {
            remarks.append(
                "the processors were \(decimal(least, places: 0)) to \(decimal(most, places: 0)) ns apart: the host "
                    + "moved them, and figures moved with them")
        }
        if Set(results.map(\.hashes.name)).count > 1 { remarks.append("the password hashes are not the same") }
        if results.contains(where: \.isGeneratorLimited) {
            remarks.append("the load tool was the bottleneck of a result")
        }
        if results.contains(where: \.isInterrupted) { remarks.append("a result is of an interrupted run") }
        if results.contains(where: { $0.connectionsLost > 0 || $0.failure != nil }) {
            remarks.append("a result is of a run that ended early, or lost connections")
        }
        if let most = results.map(\.errorShare).max(), most > 0 {
            remarks.append(
                "up to \(decimal(most * 100, places: 2)) % of a result's requests failed or were not sent: a failure "
                    + "may be faster than an answer")
        }
        return remarks
    }
}

/// A figure that is compared.
struct Figure: Sendable {
    let name: String
    let unit: String
    let isBetterWhenHigher: Bool
    /// The value for a whole result, and for a stretch of its series. Nil: there is no value.
    let ofResult: @Sendable (RunResult) -> Double?
    let ofSlices: @Sendable (ArraySlice<RunResult.Slice>, _ sliceSeconds: Int) -> Double?

    static func all(_ operations: [String], isOpenLoop: Bool) -> [Figure] {
        var figures = [cpu]
        for name in operations {
            for (label, share) in [("p50", 0.5), ("p99", 0.99)] { figures.append(latency(name, label, share)) }
            if !isOpenLoop { figures.append(rate(name)) }
        }
        return figures
    }

    private static let cpu = Figure(
        name: "server CPU a request", unit: "µs", isBetterWhenHigher: false,
        ofResult: { $0.cpuMicrosecondsPerRequest },
        ofSlices: { slices, seconds in
            var microseconds = 0.0
            var answers = 0
            for slice in slices {
                guard let share = slice.serverCPUShare else { return nil }
                microseconds += share * Double(seconds) * 1e6
                for record in slice.operations.values { answers += Int(record.response.count) + record.errorCount }
            }
            return answers > 0 ? microseconds / Double(answers) : nil
        })

    private static func latency(_ operation: String, _ label: String, _ share: Double) -> Figure {
        @Sendable func microseconds(_ histogram: Histogram) -> Double? {
            histogram.isEmpty ? nil : Double(histogram.value(atShare: share)) / 1e3
        }
        return Figure(
            name: "\(operation) \(label)", unit: "µs", isBetterWhenHigher: false,
            ofResult: { result in
                result.operations.first { $0.name == operation }.flatMap { microseconds($0.record.response) }
            },
            ofSlices: { slices, _ in
                var histogram = Histogram()
                for slice in slices { histogram.merge(slice.operations[operation]?.response ?? Histogram()) }
                return microseconds(histogram)
            })
    }

    private static func rate(_ operation: String) -> Figure {
        Figure(
            name: "\(operation) rate", unit: "/s", isBetterWhenHigher: true,
            ofResult: { result in result.operations.first { $0.name == operation }.map { result.rate(of: $0) } },
            ofSlices: { slices, seconds in
                let count = slices.reduce(0) { $0 + ($1.operations[operation]?.response.count ?? 0) }
                return slices.isEmpty ? nil : Double(count) / Double(slices.count * seconds)
            })
    }
}

/// A figure's values on one side of a comparison.
struct Samples {
    let middle: Double
    /// The variance of `middle`, as far as it is known.
    let variance: Double

    init?(_ figure: Figure, _ results: [RunResult]) {
        let values = results.compactMap(figure.ofResult)
        guard values.count == results.count, !values.isEmpty else { return nil }
        middle = Self.median(values)
        if values.count >= 3 {
            let mean = values.reduce(0, +) / Double(values.count)
            let squares = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
            variance = squares / Double(values.count - 1) / Double(values.count)
        } else {
            // A run is one sample from the distribution that its blocks show.
            let blocks = results.flatMap { Self.blocks($0).compactMap { figure.ofSlices($0, $1) } }
            guard blocks.count >= 3 else { return nil }
            let deviations = blocks.map { abs($0 - Self.median(blocks)) }
            // 1.4826: from the median deviation to the standard deviation of a normal distribution.
            let deviation = 1.4826 * Self.median(deviations)
            variance = deviation * deviation / Double(values.count)
        }
    }

    /// The whole slices, without those after the end of the run.
    private static func blocks(_ result: RunResult) -> [(ArraySlice<RunResult.Slice>, Int)] {
        let count = min(result.series.count, Int(result.seconds) / result.sliceSeconds)
        let blockCount = min(Comparison.blockCount, count)
        return (0..<blockCount).map { number in
            let slices = result.series[count * number / blockCount..<count * (number + 1) / blockCount]
            return (slices, result.sliceSeconds)
        }
    }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}

extension Comparison {
    func printed(asMarkdown: Bool) -> String {
        let head = ["", "before", "after", "change", "needed", ""]
        let cells = rows.map { row in
            [
                row.what, "\(decimal(row.before, places: 1)) \(row.unit)",
                "\(decimal(row.after, places: 1)) \(row.unit)",
                Self.percent(row.difference), "±" + Self.percent(row.needed).dropFirst(), Self.word(row.change),
            ]
        }
        guard asMarkdown else {
            let widths = head.indices.map { column in ([head] + cells).map { $0[column].count }.max() ?? 0 }
            return ([head] + cells).map { line in
                zip(line, widths).map { padded($0, to: $1) }.joined(separator: "  ") + "\n"
            }.joined() + remarks.map { "NOTE: \($0)\n" }.joined()
        }
        let lines = [head, head.map { _ in "---" }] + cells
        return lines.map { "| " + $0.map(Self.escaped).joined(separator: " | ") + " |\n" }.joined()
            + (remarks.isEmpty ? "" : "\n" + remarks.map { "- \(Self.escaped($0))\n" }.joined())
    }

    private static func word(_ change: Change) -> String {
        switch change {
        case .same: "same"
        case .better: "better"
        case .worse: "REGRESSION"
        case .unclear: "unclear: within the noise"
        }
    }

    private static func percent(_ share: Double) -> String {
        (share < 0 ? "-" : "+") + decimal(abs(share) * 100, places: 1) + "%"
    }

    /// Names come from files: no name may leave its cell.
    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("|", with: "\\|").replacing("<", with: "&lt;")
            .replacing("\n", with: " ")
    }
}
