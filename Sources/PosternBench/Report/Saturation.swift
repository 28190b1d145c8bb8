import Base
import JSON

/// The result of `saturate`.
struct SearchResult {
    /// The highest rate that holds, in requests a second. Nil: the objectives held at no rate.
    let best: Int?
    /// The lowest rate at which the objectives did not hold. Nil: they held at every rate.
    let failed: Int?
    let sentence: String

    /// Nil for the result of another command.
    init?(_ result: RunResult) {
        func member(_ name: String) -> JSONValue? {
            result.configuration.first { $0.name.string == name }?.value
        }
        guard let found = member("saturation_per_second") else { return nil }
        let objectives = member("objectives")?.string ?? "the objectives"
        failed = member("failed_per_second")?.integer.map { Int($0) }
        best = found.integer.map { Int($0) }
        let limit = member("failed_because_of")?.string.flatMap(RunResult.Limit.init(rawValue:)) ?? .server
        let end = failed.map { ", and no more at \($0)" } ?? ", the most that was tried"
        if let best {
            switch limit {
            case .server:
                sentence = "the server saturates above \(best) a second: \(objectives) holds up to there\(end)"
            case .machine:
                sentence =
                    "the server saturates above \(best) a second, with the load tool beside it on the same processors: "
                    + "\(objectives) holds up to there\(end), where all of them were busy"
            case .loadTool:
                sentence =
                    "\(objectives) holds up to \(best) a second; above, the load tool was the bottleneck, not the "
                    + "server: use more --threads, or another machine"
            }
        } else {
            sentence = "\(objectives) does not even hold at \(failed.map(String.init) ?? "the lowest rate") a second"
        }
    }
}

/// The figures of all slices of one rate.
struct RateFigures {
    let rate: Double
    private(set) var seconds = 0.0
    private(set) var okCount = 0
    private(set) var errorCount = 0
    private(set) var response = Histogram()
    private var serverShares: [Double] = []
    private var machineShares: [Double] = []

    var answered: Double { Double(okCount) / seconds }
    /// CPUs of the server; nil when its process is not known.
    var serverCPUShare: Double? { Self.mean(serverShares) }
    /// CPUs of everything on the load tool's machine.
    var machineCPUShare: Double? { Self.mean(machineShares) }

    private static func mean(_ values: [Double]) -> Double? {
        values.isEmpty ? nil : values.reduce(0, +) / Double(values.count)
    }

    /// In the order of the rates; empty for a closed loop.
    static func all(of result: RunResult) -> [RateFigures] {
        var byRate: [Double: RateFigures] = [:]
        for slice in result.series {
            guard let target = slice.target, target > 0 else { continue }
            byRate[target, default: RateFigures(rate: target)].add(slice, seconds: Double(result.sliceSeconds))
        }
        return byRate.values.sorted { $0.rate < $1.rate }
    }

    private mutating func add(_ slice: RunResult.Slice, seconds: Double) {
        self.seconds += seconds
        okCount += slice.okCount
        errorCount += slice.errorCount
        response.merge(slice.response)
        if let share = slice.serverCPUShare { serverShares.append(share) }
        if let share = slice.machineCPUShare { machineShares.append(share) }
    }

    private init(rate: Double) { self.rate = rate }
}

/// The highest rate with which a server kept up, if a result has slices of several rates.
struct Saturation {
    let sentence: String

    /// A server keeps up with a rate when the slices of that rate answered 97 % of what was asked for.
    static let keptUpShare = 0.97

    /// Nil when there is one rate only, and for a scenario: its rate is of journeys, and not of requests.
    init?(_ result: RunResult) {
        guard result.journeysBegun == nil else { return nil }
        let rates = RateFigures.all(of: result)
        guard rates.count > 1 else { return nil }
        let kept = rates.prefix { $0.answered >= Self.keptUpShare * $0.rate }
        if kept.count == rates.count {
            sentence =
                "the server kept up with every rate, up to \(decimal(rates[rates.count - 1].rate, places: 0)) a second"
        } else if let last = kept.last {
            sentence =
                "the server kept up with \(decimal(last.rate, places: 0)) a second, and not with "
                + "\(decimal(rates[kept.count].rate, places: 0))"
        } else {
            sentence = "the server did not even keep up with \(decimal(rates[0].rate, places: 0)) a second"
        }
    }
}
