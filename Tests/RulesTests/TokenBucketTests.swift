import Base
import Testing

@testable import Rules

@Suite struct TokenBucketTests {
    private let start = Timestamp(seconds: 1_000)

    @Test func `As many as fit come at once, then as many as the rate says`() {
        var bucket = TokenBucket(size: 4, now: start)
        for _ in 0..<4 {
            #expect(bucket.wait(until: 0, perSecond: 2) == nil)
            bucket.spend(1, size: 4)
        }
        #expect(bucket.wait(until: 0, perSecond: 2) == .milliseconds(500))
        bucket.refill(perSecond: 2, size: 4, now: start + .milliseconds(500))
        #expect(bucket.wait(until: 0, perSecond: 2) == nil)
        bucket.refill(perSecond: 2, size: 4, now: start + .hours(5))
        #expect(bucket.level == 4)
    }

    @Test func `What costs more than is left has to be made good, by one bucket's worth at most`() {
        var bucket = TokenBucket(size: 10, now: start)
        bucket.spend(1_000_000, size: 10)
        #expect(bucket.level == -10)
        #expect(bucket.wait(until: -10, perSecond: 1) != nil)
        bucket.refill(perSecond: 1, size: 10, now: start + .seconds(1))
        #expect(bucket.wait(until: -10, perSecond: 1) == nil)
        #expect(bucket.wait(until: 0, perSecond: 1) == .seconds(10))
    }

    @Test func `A bucket is full again when its rate has made good what was spent`() {
        var bucket = TokenBucket(size: 10, now: start)
        #expect(bucket.fullAgain(perSecond: 2, size: 10) == start)
        bucket.spend(5, size: 10)
        #expect(bucket.fullAgain(perSecond: 2, size: 10) == start + .seconds(3))
        // The rate is zero, next to zero, or negative.
        for rate in [0, 1e-300, -1] { #expect(bucket.fullAgain(perSecond: rate, size: 10) == start + .hours(24)) }
    }

    @Test func `A clock that is set back refills nothing and stops nothing`() {
        var bucket = TokenBucket(size: 4, now: start)
        bucket.spend(4, size: 4)
        bucket.refill(perSecond: 1, size: 4, now: start - .hours(10))
        #expect(bucket.level == 0)
        bucket.refill(perSecond: 1, size: 4, now: start - .hours(10) + .seconds(2))
        #expect(bucket.level == 2)
    }
}
