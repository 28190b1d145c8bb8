import Glibc

/// Results that were measured in turn, one before and one after at a time.
///
/// Another program on the machine affects both results of a pair, so the ratios within the pairs move less than the
/// figures themselves. A pair whose processors were moved by the host in between is left out.
struct ResultPairs {
    let pairs: [(before: RunResult, after: RunResult)]

    static let countMin = 3

    /// Nil unless both sides have the same number of results, three or more, and pair follows pair in time.
    init?(_ before: [RunResult], _ after: [RunResult]) {
        guard before.count == after.count, before.count >= Self.countMin else { return nil }
        let first = before.sorted { $0.startedAt < $1.startedAt }
        let second = after.sorted { $0.startedAt < $1.startedAt }
        let ordered = Array(zip(first, second))
        for (pair, next) in zip(ordered, ordered.dropFirst()) {
            let end = max(pair.0.startedAt, pair.1.startedAt)
            guard end < min(next.0.startedAt, next.1.startedAt) else { return nil }
        }
        let kept = ordered.filter { before, after in
            guard let left = Comparison.distance(before), let right = Comparison.distance(after) else { return true }
            return max(left, right) <= min(left, right) * Comparison.distanceRatioMax
        }
        pairs = kept.map { (before: $0, after: $1) }
    }

    /// The median of the ratios, and the standard deviation of that median, both as natural logarithms. Nil where too
    /// few pairs have the figure.
    func ratio(of figure: Figure) -> (middle: Double, deviation: Double)? {
        let ratios = pairs.compactMap { before, after -> Double? in
            guard let left = figure.ofResult(before), let right = figure.ofResult(after), left > 0, right > 0 else {
                return nil
            }
            return log(right / left)
        }
        guard ratios.count >= Self.countMin else { return nil }
        let mean = ratios.reduce(0, +) / Double(ratios.count)
        let squares = ratios.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        let deviation = (squares / Double(ratios.count - 1) / Double(ratios.count)).squareRoot()
        return (Samples.median(ratios), deviation)
    }
}
