import Base
import JSON

/// What `saturate` found.
struct SearchResult {
    /// Requests a second; nil when the objectives held at no rate.
    let best: Int?
    let sentence: String

    /// Nil for the result of another command.
    init?(_ result: RunResult) {
        func member(_ name: String) -> JSONValue? {
            result.configuration.first { $0.name.string == name }?.value
        }
        guard let found = member("saturation_per_second") else { return nil }
        let objectives = member("objectives")?.string ?? "the objectives"
        let failed = member("failed_per_second")?.integer
        best = found.integer.map { Int($0) }
        if let best, member("failed_by_load_tool")?.bool == true {
            sentence =
                "\(objectives) holds up to \(best) a second; above, the load tool was the bottleneck, not the server:"
                + " use more --threads, or another machine"
        } else if let best {
            sentence =
                "the server saturates above \(best) a second: \(objectives) holds up to there"
                + (failed.map { ", and no more at \($0)" } ?? ", the most that was tried")
        } else {
            sentence = "\(objectives) does not even hold at \(failed.map(String.init) ?? "the lowest rate") a second"
        }
    }
}

/// Up to which rate a server kept up, where a result has slices of several rates.
struct Saturation {
    let sentence: String

    /// A server keeps up with a rate when the slices of it answered 97 % of what was asked for.
    static let keptUpShare = 0.97

    /// Nil when there is one rate only.
    init?(_ result: RunResult) {
        var byRate: [Double: (asked: Double, answered: Double)] = [:]
        for slice in result.series {
            guard let target = slice.target, target > 0 else { continue }
            let sums = byRate[target] ?? (0, 0)
            byRate[target] = (
                sums.asked + target * Double(result.sliceSeconds), sums.answered + Double(slice.okCount)
            )
        }
        guard byRate.count > 1 else { return nil }
        let rates = byRate.sorted { $0.key < $1.key }
        let kept = rates.prefix { $0.value.answered >= Self.keptUpShare * $0.value.asked }
        if kept.count == rates.count {
            sentence =
                "the server kept up with every rate, up to \(decimal(rates[rates.count - 1].key, places: 0)) a second"
        } else if let last = kept.last {
            sentence =
                "the server kept up with \(decimal(last.key, places: 0)) a second, and not with "
                + "\(decimal(rates[kept.count].key, places: 0))"
        } else {
            sentence = "the server did not even keep up with \(decimal(rates[0].key, places: 0)) a second"
        }
    }
}
