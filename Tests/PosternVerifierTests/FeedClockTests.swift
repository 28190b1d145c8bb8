import Base
import Testing

@testable import PosternVerifier

/// The time of a feed, and its age. The table is also that of the Python package (test_tokens.py).
@Suite struct FeedClockTests {
    /// Our time, the time that a message tells (nil: none comes), the server's time now, and the staleness, in seconds.
    typealias Row = (now: Int64, told: Int64?, time: Int64, staleness: Int64)

    private static let table: [(name: String, rows: [Row])] = [
        ("between messages the time goes on", [(10, 10, 10, 0), (15, nil, 15, 5), (20, 20, 20, 0)]),
        ("a server that is ahead is followed at once", [(10, 15, 15, 0), (20, 25, 25, 0)]),
        (
            "a node that is cut off grows stale although it sends",
            [
                (20, 15, 20, 5), (30, 15, 30, 15), (400, 15, 400, 385), (800, 15, 800, 785),
                (1_500, 15, 1_500, 1_485), (1_510, 1_510, 1_510, 0),
            ]
        ),
        ("a node that lags is as stale as it is late", [(320, 300, 320, 20), (330, 329, 330, 1), (340, 340, 340, 0)]),
        (
            "after ten minutes a lower time is believed",
            [
                (10, 1_010, 1_010, 0), (20, 20, 1_020, 1_000), (320, 320, 1_320, 1_000), (619, 619, 1_619, 1_000),
                (620, 620, 620, 0), (630, 630, 630, 0),
            ]
        ),
        (
            "a server that lowers its time runs at half speed",
            [
                (10, 110, 110, 0), (20, 115, 120, 5), (320, 265, 420, 155), (620, 415, 715, 300),
                (630, 530, 725, 195),
            ]
        ),
    ]

    private static let begun = Instant(nanoseconds: 5_000_000_000)
    private static func local(_ second: Int64) -> Instant { begun.advanced(by: .seconds(second)) }

    @Test func `The time goes on, and what was told grows old`() {
        for (name, rows) in Self.table {
            var clock = FeedClock(.zero, at: Self.begun)
            for row in rows {
                let now = Self.local(row.now)
                if let told = row.told {
                    let isFarLower = clock.hear(Timestamp(seconds: told), at: now)
                    #expect(!isFarLower, "\(name), \(row.now)")
                }
                #expect(clock.time(at: now) == Timestamp(seconds: row.time), "\(name), \(row.now)")
                #expect(clock.staleness(at: now) == .seconds(row.staleness), "\(name), \(row.now)")
            }
        }
    }

    /// The table of the Python package has the same rows.
    @Test func `A time that is far lower is not followed without a snapshot`() {
        var clock = FeedClock(.zero, at: Self.begun)
        _ = clock.hear(Timestamp(seconds: 7_210), at: Self.local(10))
        for (now, isFarLower) in [(20, false), (619, false), (620, true), (630, false), (1_230, true)] {
            let (second, local) = (Int64(now), Self.local(Int64(now)))
            let found = clock.hear(Timestamp(seconds: second), at: local)
            #expect(found == isFarLower, "\(now)")
            #expect(clock.time(at: local) == Timestamp(seconds: second + 7_200))
            #expect(clock.staleness(at: local) == .seconds(7_200))
        }
    }

    @Test func `A clock of ours that runs fast makes nothing stale`() {
        var clock = FeedClock(.zero, at: Self.begun)
        for second in stride(from: 10, to: 100_000, by: 10) as StrideTo<Int64> {
            let isFarLower = clock.hear(Timestamp(microseconds: second * 999_000), at: Self.local(second))
            #expect(!isFarLower)
            #expect(clock.staleness(at: Self.local(second)) < .seconds(2))
        }
    }

    @Test func `No time that a server tells ends the process`() {
        for first in [Int64.min, 0, .max] {
            for second in [Int64.min, 0, .max] {
                var clock = FeedClock(Timestamp(microseconds: first), at: Self.begun)
                for hour in 1...3 as ClosedRange<Int64> {
                    _ = clock.hear(Timestamp(microseconds: second), at: Self.local(3_600 * hour))
                    #expect(clock.staleness(at: Self.local(3_600 * hour + 1)) >= .seconds(1))
                }
            }
        }
    }
}
