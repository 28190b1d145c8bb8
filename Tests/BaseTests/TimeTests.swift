import Base
import Testing

@Suite struct TimestampTests {
    private static let extremes: [Int64] = [.min, .min + 1, -1_000_001, -1, 0, 1, 999_999, 1_000_000, .max - 1, .max]
    private static let durations: [Duration] = [
        .zero, .microseconds(1), .microseconds(-1), .seconds(1), .seconds(-1), .microseconds(Int64.max),
        .microseconds(Int64.min), .seconds(Int64.max), .seconds(Int64.min), .seconds(Int64.max) + .seconds(Int64.max),
        .seconds(Int64.min) + .seconds(Int64.min),
    ]

    @Test func secondsAreRoundedDown() {
        #expect(Timestamp(microseconds: 1_999_999).seconds == 1)
        #expect(Timestamp(microseconds: 0).seconds == 0)
        #expect(Timestamp(microseconds: -1).seconds == -1)
        #expect(Timestamp(microseconds: -1_000_000).seconds == -1)
        #expect(Timestamp(microseconds: -1_000_001).seconds == -2)
        #expect(Timestamp(microseconds: .min).seconds == -9_223_372_036_855)
        #expect(Timestamp(microseconds: .max).seconds == 9_223_372_036_854)
        #expect(Timestamp(seconds: 1_800_000_000).microseconds == 1_800_000_000_000_000)
    }

    @Test func secondsBeyondTheRangeSaturate() {
        #expect(Timestamp(seconds: .max) == Timestamp(microseconds: .max))
        #expect(Timestamp(seconds: .min) == Timestamp(microseconds: .min))
        #expect(Timestamp(seconds: 9_223_372_036_854).microseconds == 9_223_372_036_854_000_000)
        #expect(Timestamp(seconds: 9_223_372_036_855) == Timestamp(microseconds: .max))
    }

    @Test func sumsAreThoseOfWiderNumbersSaturated() {
        for microseconds in Self.extremes {
            let time = Timestamp(microseconds: microseconds)
            for duration in Self.durations {
                let sum = Int128(microseconds) + duration.attoseconds / 1_000_000_000_000
                let difference = Int128(microseconds) - duration.attoseconds / 1_000_000_000_000
                #expect((time + duration).microseconds == Int64(clamping: sum))
                #expect((time - duration).microseconds == Int64(clamping: difference))
            }
        }
    }

    @Test func differencesNeverTrapAndKeepTheirSign() {
        for left in Self.extremes.map(Timestamp.init(microseconds:)) {
            for right in Self.extremes.map(Timestamp.init(microseconds:)) {
                let difference = left - right
                #expect((difference < .zero) == (left < right))
                #expect((difference == .zero) == (left == right))
            }
        }
        #expect(Timestamp(seconds: 5) - Timestamp(seconds: 3) == .seconds(2))
    }
}

@Suite struct DurationTests {
    @Test func microsecondsAreCutAndSaturated() {
        #expect(Duration.nanoseconds(1_999).microseconds == 1)
        #expect(Duration.nanoseconds(-1_999).microseconds == -1)
        #expect(Duration.milliseconds(-1_500).microseconds == -1_500_000)
        #expect(Duration.seconds(Int64.max).microseconds == .max)
        #expect(Duration.seconds(Int64.min).microseconds == .min)
        #expect((Duration.seconds(Int64.max) + .seconds(Int64.max)).microseconds == .max)
        #expect((Duration.seconds(Int64.min) + .seconds(Int64.min)).microseconds == .min)
        #expect(Duration.microseconds(Int64.max).microseconds == .max)
        #expect(Duration.microseconds(Int64.min).microseconds == .min)
    }

    @Test func longerUnitsSaturateToo() {
        #expect(Duration.minutes(2) == .seconds(120))
        #expect(Duration.hours(-1) == .seconds(-3_600))
        #expect(Duration.days(180) == .seconds(180 * 86_400))
        #expect(Duration.minutes(.max).microseconds == .max)
        #expect(Duration.hours(.min).microseconds == .min)
        #expect(Duration.days(.max) > .zero && Duration.days(.min) < .zero)
    }
}

@Suite struct ClockTests {
    @Test func aManualClockMovesOnlyWhenTold() {
        let manual = ManualClock(startingAt: Timestamp(seconds: 10))
        let clock = manual.clock
        #expect(clock.now() == Timestamp(seconds: 10))
        #expect(clock.now() == Timestamp(seconds: 10))
        manual.advance(by: .milliseconds(1))
        #expect(clock.now() == Timestamp(microseconds: 10_001_000))
        let elapsed = manual.machine.elapsed()
        manual.step(by: .seconds(-20))
        #expect(clock.now() < .zero)
        #expect(manual.machine.elapsed() == elapsed)
        manual.advance(by: .seconds(2))
        #expect(manual.machine.elapsed() == elapsed.advanced(by: .seconds(2)))
    }

    @Test func theSystemsClockIsOfThisCentury() {
        #expect(Clock.system.now() > Timestamp(seconds: 1_700_000_000))
        #expect(Clock.system.now() < Timestamp(seconds: 4_102_444_800))
    }
}

@Suite struct InstantTests {
    @Test func timeDoesNotGoBack() {
        let awake = Instant.nowWithSleep
        #expect(Instant.nowWithSleep >= awake)
        let first = Instant.now
        let second = Instant.now
        #expect(second >= first)
        #expect(second.nanoseconds(since: first) >= 0)
    }

    @Test func farFutureAndFarPastSaturateOnTheirOwnSide() {
        let instant = Instant(nanoseconds: 1_000)
        #expect(instant.advanced(byNanoseconds: 5) == Instant(nanoseconds: 1_005))
        #expect(instant.advanced(by: .microseconds(-1)) == Instant(nanoseconds: 0))
        #expect(instant.advanced(byNanoseconds: .max) == .distantFuture)
        #expect(instant.advanced(by: .seconds(Int64.max)) == .distantFuture)
        #expect(Instant.distantFuture.advanced(by: .seconds(1)) == .distantFuture)
        #expect(instant.advanced(by: .seconds(Int64.min)) == Instant(nanoseconds: .min))
        #expect(Instant(nanoseconds: -1_000).advanced(byNanoseconds: .min) == Instant(nanoseconds: .min))
        #expect(Instant(nanoseconds: .min).nanoseconds(since: .distantFuture) != 0)
    }
}
