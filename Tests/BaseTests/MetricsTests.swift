import Base
import Testing

@Suite struct MetricsTests {
    @Test func countersAndGaugesCount() {
        let counter = Counter()
        counter.add()
        counter.add(4)
        #expect(counter.value == 5)
        let gauge = Gauge()
        gauge.add(3)
        gauge.add(-5)
        #expect(gauge.value == -2)
        gauge.set(9)
        #expect(gauge.value == 9)
    }

    @Test func countsFromManyThreadsAddUp() {
        let counter = Counter()
        let gauge = Gauge()
        let threads = (0..<4).map { _ in
            OSThread(name: "count") {
                for _ in 0..<10_000 {
                    counter.add()
                    gauge.add(1)
                    gauge.add(-1)
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(counter.value == 40_000)
        #expect(gauge.value == 0)
    }
}

@Suite struct DurationHistogramTests {
    private let bounds = DurationHistogram.boundsMicroseconds

    /// The index of the only bucket that counted one recording.
    private func bucket(ofNanoseconds nanoseconds: Int64) -> Int? {
        let histogram = DurationHistogram()
        histogram.record(nanoseconds: nanoseconds)
        return histogram.snapshot.cumulativeCounts.firstIndex(of: 1)
    }

    @Test func boundsGrow() {
        #expect(bounds == bounds.sorted() && Set(bounds).count == bounds.count)
        #expect(DurationHistogram().snapshot.cumulativeCounts.count == bounds.count + 1)
    }

    @Test func eachBoundBelongsToItsOwnBucket() {
        for (index, bound) in bounds.enumerated() {
            #expect(bucket(ofNanoseconds: bound * 1_000) == index)
            #expect(bucket(ofNanoseconds: (bound + 1) * 1_000) == index + 1)
        }
    }

    @Test func extremesAreCountedAndDoNotTrap() {
        #expect(bucket(ofNanoseconds: 0) == 0)
        #expect(bucket(ofNanoseconds: -5) == 0)
        #expect(bucket(ofNanoseconds: .min) == 0)
        #expect(bucket(ofNanoseconds: .max) == bounds.count)
    }

    @Test func theSnapshotIsCumulativeAndSummed() {
        let histogram = DurationHistogram()
        for nanoseconds: Int64 in [5_000, 20_000, 20_000, 1_000_000_000, -1] {
            histogram.record(nanoseconds: nanoseconds)
        }
        let (counts, sum) = (histogram.snapshot.cumulativeCounts, histogram.snapshot.sumSeconds)
        #expect(counts[0] == 2 && counts[1] == 4 && counts.last == 5)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(abs(sum - 1.000045) < 1e-9)
    }
}
