// Latencies are counted, not kept: a run of minutes takes as much memory as one of a second.

/// Counts of whole numbers in log-linear buckets, as HdrHistogram's: 128 buckets to each power of two.
///
/// A value read back is at most 1/128 (0.8 %) above the one recorded; values below 256 are exact, values from 2^40 on
/// (18 minutes in nanoseconds) share the last bucket. `maximum` and `mean` are exact. Histograms of several drivers add
/// up without loss. Source: G. Tene, HdrHistogram (hdrhistogram.org).
struct Histogram: Equatable, Sendable {
    private static let bucketBits = 7
    private static let bucketsPerPower = 1 << bucketBits
    private static let valueMax: UInt64 = 1 << 40 - 1

    private var counts: [UInt64]
    private(set) var count: UInt64 = 0
    private(set) var maximum: UInt64 = 0
    private var sum: UInt64 = 0

    init() { counts = [UInt64](repeating: 0, count: Self.index(of: Self.valueMax) + 1) }

    var mean: Double { count == 0 ? 0 : Double(sum) / Double(count) }

    mutating func record(_ value: UInt64) {
        counts[Self.index(of: min(value, Self.valueMax))] += 1
        count += 1
        sum &+= value
        if value > maximum { maximum = value }
    }

    mutating func merge(_ other: Histogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        count += other.count
        sum &+= other.sum
        maximum = max(maximum, other.maximum)
    }

    /// The smallest value that at least this share of all values does not exceed; 0 without any. `share` is 0...1.
    func value(atShare share: Double) -> UInt64 {
        let rank = max(1, UInt64((share * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() where count > 0 {
            seen += count
            if seen >= rank { return min(Self.highestValue(inBucket: index), maximum) }
        }
        return maximum
    }

    /// Values below 2 × 128 have a bucket each; above, the bits after the first eight are dropped.
    private static func index(of value: UInt64) -> Int {
        let shift = max(0, 63 - bucketBits - (value | 1).leadingZeroBitCount)
        return shift << bucketBits + Int(value >> UInt64(shift))
    }

    private static func highestValue(inBucket index: Int) -> UInt64 {
        let shift = max(0, index >> bucketBits - 1)
        return UInt64(index - shift << bucketBits + 1) << UInt64(shift) - 1
    }
}
