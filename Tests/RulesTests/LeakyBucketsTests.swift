import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct LeakyBucketsTests {
    private let start = Timestamp(seconds: 1_800_000_000)
    private let rate = LeakyBuckets.Rate(capacity: 30, perHour: 360)

    @Test func thirtyAtOnceThenOneEveryTenSeconds() {
        var buckets = LeakyBuckets()
        for _ in 0..<30 { #expect(buckets.spend(1, rate, now: start) == nil) }
        for _ in 0..<1_000 { #expect(buckets.spend(1, rate, now: start) == .seconds(10)) }
        #expect(buckets.spend(1, rate, now: start + .seconds(9)) == .seconds(1))
        #expect(buckets.spend(1, rate, now: start + .seconds(10)) == nil)
        #expect(buckets.spend(1, rate, now: start + .seconds(10)) == .seconds(10))
        #expect(buckets.spend(2, rate, now: start) == nil)
    }

    @Test func whatWasSpentElsewhereAWhileAgoLeaksNothingTwice() {
        var buckets = LeakyBuckets()
        for _ in 0..<30 { #expect(buckets.spend(1, rate, now: start) == nil) }
        for _ in 0..<5 { buckets.add(1, rate, 0, at: start - .minutes(1)) }
        #expect(buckets.spend(1, rate, now: start) == .seconds(10))
        buckets.add(2, rate, 30, at: start - .minutes(5))
        #expect(buckets.level(2, rate, now: start) == 0)
        buckets.add(2, rate, .max, at: start)
        #expect(buckets.overflow(2, rate, now: start) == 1)
    }

    @Test func whatIsGivenBackWasNeverSpent() {
        var buckets = LeakyBuckets()
        for _ in 0..<1_000 {
            #expect(buckets.spend(1, rate, now: start) == nil)
            buckets.giveBack(1, rate)
            buckets.giveBack(2, rate)
        }
        #expect(buckets.level(1, rate, now: start) == 0)
    }

    /// Compares with the list of all attempts: no window holds more than the capacity and what leaks in it. A refused
    /// attempt fits after the wait it was told, not a microsecond earlier, and no wait is longer than one unit leaks.
    @Test func noWindowHoldsMoreThanItsShare() {
        var random = SeededRandom.printed()
        for _ in 0..<100 {
            let rate = LeakyBuckets.Rate(capacity: 1 + random.below(8), perHour: [3_600, 360, 90][random.below(3)])
            var buckets = LeakyBuckets()
            var now = start
            var admitted: [Timestamp] = []
            for _ in 0..<200 {
                now = now + [.zero, .microseconds(1), .seconds(1), .seconds(45), .minutes(10)][random.below(5)]
                guard let wait = buckets.spend(7, rate, now: now) else {
                    admitted.append(now)
                    continue
                }
                #expect(wait > .zero && wait <= rate.interval)
                #expect(buckets.wait(7, rate, now: now + wait - .microseconds(1)) != nil)
                #expect(buckets.wait(7, rate, now: now + wait) == nil)
            }
            for first in admitted.indices {
                for last in first..<admitted.count {
                    let leaked = (admitted[last] - admitted[first]).microseconds / rate.interval.microseconds
                    #expect(last - first + 1 <= rate.capacity + Int(leaked))
                }
            }
        }
    }

    @Test func aClockThatWentBackMakesNobodyWaitUntilItIsWhereItWas() {
        var buckets = LeakyBuckets()
        for _ in 0..<30 { _ = buckets.spend(1, rate, now: start) }
        for back in [Duration.seconds(1), .hours(1), .days(400)] {
            #expect(buckets.wait(1, rate, now: start - back) == .seconds(10))
            var copy = buckets
            #expect(copy.spend(1, rate, now: start - back) == .seconds(10))
            copy.charge(1, rate, 0, now: start - back)
            #expect(copy.spend(1, rate, now: start - back + .seconds(10)) == nil)
        }
    }

    @Test func timesAndCountsAtTheEndsOfTheNumbersDoNotTrap() {
        for first in [Int64.min, -1, 0, .max] {
            for second in [Int64.min, -1, 0, .max] {
                for count in [Int.min, -1, 0, 1, .max] {
                    var buckets = LeakyBuckets()
                    let rate = LeakyBuckets.Rate(capacity: count == .max ? 1 << 30 : 30, perHour: 1)
                    for time in [first, second] {
                        buckets.charge(1, rate, count, now: Timestamp(microseconds: time))
                        _ = buckets.spend(1, rate, now: Timestamp(microseconds: time))
                        _ = buckets.level(1, rate, now: Timestamp(microseconds: time))
                        _ = buckets.overflow(1, rate, now: Timestamp(microseconds: time))
                    }
                }
            }
        }
    }

    @Test func howFarABucketIsOverdrawnGrowsToOneAndNoFurther() {
        var buckets = LeakyBuckets()
        let rate = LeakyBuckets.Rate(capacity: 100, perHour: 100)
        var last = 0.0
        for count in 1...200 {
            buckets.charge(1, rate, 1, now: start)
            let overflow = buckets.overflow(1, rate, now: start)
            #expect(count <= 100 ? overflow == 0 : overflow > 0 && overflow >= last && overflow <= 1)
            last = overflow
        }
        #expect(last == 1)
        #expect(buckets.overflow(1, rate, now: start + .minutes(15)) == 0)
    }

    @Test func memoryIsBoundedAndTheQuietestGoFirst() {
        var buckets = LeakyBuckets(bucketsMax: 64)
        for _ in 0..<30 { _ = buckets.spend(0, rate, now: start) }
        for index in 1..<2_000 {
            let now = start + .microseconds(index)
            buckets.charge(UInt64(index), rate, 1, now: now)
            #expect(buckets.wait(0, rate, now: now) != nil)
            buckets.charge(0, rate, 1, now: now)
            let count = Mirror(reflecting: buckets).children.first { $0.label == "buckets" }
                .map { Mirror(reflecting: $0.value).children.count }
            #expect((count ?? .max) <= 65)
        }
    }
}
