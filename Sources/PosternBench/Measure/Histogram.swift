// Latencies are counted, not kept: a run of minutes takes as much memory as one of a second.

/// Counts of whole numbers in the buckets of an HdrHistogram with three significant digits, from 1 to 60 seconds in
/// nanoseconds.
///
/// A value read back is at most 1/1024 above the one recorded; values below 2048 are exact. Values above 60 seconds
/// share the last bucket. `maximum` and `mean` are exact. Histograms of several threads add up without loss. An empty
/// histogram takes no memory, any other 220 KiB. Source: G. Tene, HdrHistogram (hdrhistogram.org).
struct Histogram: Equatable, Sendable {
    /// The largest value that has a bucket of its own size: 60 seconds.
    static let highest: UInt64 = 60_000_000_000
    static let significantDigits = 3
    private static let bucketBits = 10
    /// How many counters there are.
    static let counterCount = index(of: highest) + 1

    /// The counters: none, or `counterCount` of them.
    private(set) var counts: [UInt64] = []
    /// The counters outside of this range are 0.
    private var used = 0..<0
    private(set) var count: UInt64 = 0
    private(set) var maximum: UInt64 = 0
    private var sum: Double = 0

    init() {}

    var isEmpty: Bool { count == 0 }
    var mean: Double { count == 0 ? 0 : sum / Double(count) }

    mutating func record(_ value: UInt64) {
        if counts.isEmpty { counts = [UInt64](repeating: 0, count: Self.counterCount) }
        let index = Self.index(of: min(value, Self.highest))
        counts[index] += 1
        widenUsed(to: index..<index + 1)
        count += 1
        sum += Double(value)
        if value > maximum { maximum = value }
    }

    mutating func merge(_ other: Histogram) {
        guard other.count > 0 else { return }
        guard count > 0 else {
            self = other
            return
        }
        for index in other.used { counts[index] &+= other.counts[index] }
        widenUsed(to: other.used)
        count &+= other.count
        sum += other.sum
        maximum = max(maximum, other.maximum)
    }

    /// The smallest value that at least this share of all values does not exceed; 0 without any. `share` is 0...1.
    func value(atShare share: Double) -> UInt64 {
        // 0.999 is a little more than 999 of 1000 as a Double: that must not make it the thousandth value.
        let rank = UInt64(max(1, (share * Double(count) - 1e-6).rounded(.up)))
        var seen: UInt64 = 0
        for index in used {
            seen &+= counts[index]
            if seen >= rank { return min(Self.highestValue(inBucket: index), maximum) }
        }
        return maximum
    }

    /// The values that were recorded since `earlier`, a copy of this histogram at some moment. Its maximum and mean are
    /// those of the buckets.
    func difference(since earlier: Histogram) -> Histogram {
        guard earlier.count > 0, count > 0 else { return self }
        var difference = [UInt64](repeating: 0, count: Self.counterCount)
        for index in used { difference[index] = counts[index] - earlier.counts[index] }
        return Histogram(counts: difference)
    }

    /// Makes a histogram from stored counters. Maximum and mean are those of the buckets, unless the stored ones are
    /// given.
    init(counts: [UInt64], maximum: UInt64? = nil, mean: Double? = nil) {
        var used = 0..<0
        for (index, count) in counts.enumerated() where count > 0 {
            used = (used.isEmpty ? index : used.lowerBound)..<index + 1
            self.count &+= count
            self.maximum = Self.highestValue(inBucket: index)
            sum += Double(count) * Double(Self.lowestValue(inBucket: index) + Self.highestValue(inBucket: index)) / 2
        }
        guard count > 0 else { return }
        self.used = used
        self.counts = counts + [UInt64](repeating: 0, count: max(0, Self.counterCount - counts.count))
        if let maximum { self.maximum = maximum }
        if let mean { sum = mean * Double(count) }
    }

    private mutating func widenUsed(to indices: Range<Int>) {
        guard !used.isEmpty else { return used = indices }
        used = min(used.lowerBound, indices.lowerBound)..<max(used.upperBound, indices.upperBound)
    }

    /// Values below 2 × 1024 have a bucket each; above, the bits after the first eleven are dropped.
    private static func index(of value: UInt64) -> Int {
        let shift = max(0, 63 - bucketBits - (value | 1).leadingZeroBitCount)
        return shift << bucketBits + Int(value >> UInt64(shift))
    }

    static func lowestValue(inBucket index: Int) -> UInt64 {
        let shift = max(0, index >> bucketBits - 1)
        return UInt64(index - shift << bucketBits) << UInt64(shift)
    }

    static func highestValue(inBucket index: Int) -> UInt64 {
        let shift = max(0, index >> bucketBits - 1)
        return UInt64(index - shift << bucketBits + 1) << UInt64(shift) - 1
    }
}
