import Base
import Testing

@testable import Transport

/// A client is not blamed for the time in which it was not read from.
@Suite struct ReadingPausesTests {
    private static let limit = Duration.seconds(10)

    private static func second(_ count: Int64) -> Instant { Instant(nanoseconds: count * 1_000_000_000) }

    /// What happens at a second, and the frame that is then under way.
    private enum Event {
        case pause, resume
        case decode(frameBegun: Int64?)
    }

    private static func after(_ events: [(Int64, Event)]) -> ReadingPauses {
        var pauses = ReadingPauses()
        for (time, event) in events {
            switch event {
            case .pause: pauses.begin(at: second(time))
            case .resume: pauses.end(at: second(time))
            case .decode(let begun): pauses.note(frameBegun: begun.map(second))
            }
        }
        return pauses
    }

    @Test func `A limit from the start is longer by all pauses, and never over in one`() {
        let cases: [([(Int64, Event)], Int64?)] = [
            ([], 11),
            ([(2, .resume)], 11),
            ([(2, .pause)], nil),
            ([(2, .pause), (5, .resume)], 14),
            // A pause within a pause is the same pause.
            ([(2, .pause), (4, .pause), (5, .resume), (6, .resume)], 14),
            ([(2, .pause), (5, .resume), (7, .pause)], nil),
            ([(2, .pause), (5, .resume), (7, .pause), (8, .resume)], 15),
            // A clock that goes back makes no limit shorter.
            ([(5, .pause), (2, .resume)], 11),
        ]
        for (events, end) in cases {
            let pauses = Self.after(events)
            let expected = end.map(Self.second) ?? .distantFuture
            #expect(pauses.deadline(of: Self.limit, begun: Self.second(1)) == expected)
            #expect(pauses.isPaused == (end == nil))
        }
    }

    @Test func `A frame's limit is longer by the pauses since the frame began`() {
        // However many pauses there are, the time in which it is read from is the limit.
        let turns: [[(Int64, Event)]] = (0..<20).map { turn in
            let time = 3 + 2 * Int64(turn)
            return [(time, .decode(frameBegun: 3)), (time, .pause), (time + 1, .resume)]
        }
        let cases: [([(Int64, Event)], Int64?)] = [
            (Array(turns.joined()), 33),
            ([], nil),
            ([(3, .decode(frameBegun: nil))], nil),
            ([(3, .decode(frameBegun: 3))], 13),
            // Each further part of the frame changes nothing.
            ([(3, .decode(frameBegun: 3)), (9, .decode(frameBegun: 3))], 13),
            // A pause before the frame does not count.
            ([(1, .pause), (3, .resume), (3, .decode(frameBegun: 3))], 13),
            ([(3, .decode(frameBegun: 3)), (4, .pause)], nil),
            ([(3, .decode(frameBegun: 3)), (4, .pause), (60, .resume), (60, .decode(frameBegun: 3))], 69),
            // The next frame begins anew.
            ([(3, .decode(frameBegun: 3)), (4, .pause), (60, .resume), (60, .decode(frameBegun: 60))], 70),
            ([(3, .decode(frameBegun: 3)), (4, .pause), (60, .resume), (60, .decode(frameBegun: nil))], nil),
        ]
        for (events, end) in cases {
            let expected = end.map(Self.second) ?? .distantFuture
            #expect(Self.after(events).deadline(ofFrame: Self.limit) == expected)
        }
    }
}
