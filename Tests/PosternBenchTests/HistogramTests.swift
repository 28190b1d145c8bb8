import Testing

@testable import PosternBench

@Suite struct HistogramTests {
    private static let shares = [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1]

    @Test(arguments: [1, 20_240_229, 3])
    func `Every percentile is at most 1/1024 above the sorted sample's`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for count in [1, 2, 99, 10_000] {
            // Each power of two from 1 ns to 34 s is as likely as any other.
            let values = (0..<count).map { _ in random.next() >> (29 + random.next() % 35) }
            var histogram = Histogram()
            for value in values { histogram.record(value) }
            let sorted = values.sorted()
            for share in Self.shares {
                let exact = sorted[max(1, Int((share * Double(count)).rounded(.up))) - 1]
                let read = histogram.value(atShare: share)
                #expect(read >= exact && read - exact <= exact / 1024, "seed \(seed), \(count) values, share \(share)")
            }
            #expect(histogram.maximum == sorted.last)
            #expect(histogram.count == UInt64(count))
        }
    }

    @Test func `Values below 2048 are exact`() {
        for value in UInt64(0)..<2_048 {
            var histogram = Histogram()
            histogram.record(value)
            histogram.record(1 << 30)
            #expect(histogram.value(atShare: 0.5) == value)
        }
    }

    @Test func `Each bucket ends where the next one begins`() {
        for value in (0..<5_000).map({ UInt64($0) }) + (11...35).map({ UInt64(1) << $0 - 1 }) {
            var histogram = Histogram()
            histogram.record(value)
            histogram.record(value + 1)
            histogram.record(.max)
            let low = histogram.value(atShare: 0.1)
            #expect(low == value || low >= value + 1, "\(value)")
            #expect(histogram.value(atShare: 0.6) >= value + 1, "\(value)")
        }
    }

    @Test func `What is too long for the buckets still shows as the maximum`() {
        var histogram = Histogram()
        histogram.record(.max)
        #expect(histogram.maximum == .max)
        #expect(histogram.value(atShare: 0.5) >= 60_000_000_000)
    }

    @Test func `Merged histograms equal one that recorded everything`() {
        var random = SeededGenerator(seed: 5)
        var parts = [Histogram(), Histogram(), Histogram()]
        var whole = Histogram()
        for index in 0..<3_000 {
            let value = random.next() >> 30
            parts[index % 3].record(value)
            whole.record(value)
        }
        var merged = Histogram()
        for part in parts { merged.merge(part) }
        #expect(merged == whole)
        #expect(merged.mean == whole.mean)
    }

    @Test func `A difference is what was recorded in between`() {
        var histogram = Histogram()
        for value in 1...100 { histogram.record(UInt64(value) * 1_000) }
        let earlier = histogram
        for value in 1...10 { histogram.record(UInt64(value) * 1_000_000) }
        let between = histogram.difference(since: earlier)
        #expect(between.count == 10 && between.value(atShare: 0.1) >= 1_000_000)
        #expect(earlier.difference(since: Histogram()) == earlier)
        #expect(histogram.difference(since: histogram).isEmpty)
    }

    @Test func `Without values everything is 0`() {
        let histogram = Histogram()
        #expect(histogram.value(atShare: 0.99) == 0)
        #expect(histogram.mean == 0)
    }
}
