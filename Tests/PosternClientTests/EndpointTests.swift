import Base
import TestSupport
import Testing

@testable import PosternClient

/// Every state of an endpoint, and what each event makes of it.
@Suite struct EndpointTests {
    private static let now = Instant(nanoseconds: 1_000_000_000_000)
    private static let refused = Failure.connectionFailed("refused")
    private static let pause = Endpoint.Pause(since: now, until: now.advanced(by: .seconds(60)), failure: refused)

    private static func endpoint(_ state: Endpoint.State) -> Endpoint {
        var backoff = ReconnectBackoff()
        backoff.jitter = 0
        return Endpoint(id: 7, server: 0, address: nil, state: state, backoff: backoff)
    }

    private static let states: [Endpoint.State] = [
        .idle, .lookingUp, .connecting, .ready(connectionCount: 1), .ready(connectionCount: 2), .left(until: now),
        .pausing(pause),
    ]

    @Test func `An answer on a new connection makes an endpoint ready, whatever it was`() {
        let counts = [1, 1, 1, 2, 3, 1, 1]
        for (state, count) in zip(Self.states, counts) {
            var endpoint = Self.endpoint(state)
            endpoint.furtherPause = Self.pause
            endpoint.connected()
            #expect(endpoint.state == .ready(connectionCount: count), "\(state)")
            #expect(endpoint.furtherPause == nil)
        }
    }

    @Test func `A failed attempt makes an endpoint pause, but for one that is ready or was left`() {
        var generator = SeededRandom(seed: 1)
        let pausing = Endpoint.State.pausing(
            Endpoint.Pause(since: Self.now, until: Self.now.advanced(by: .seconds(1)), failure: Self.refused))
        let expected: [Endpoint.State] = [
            .idle, pausing, pausing, .ready(connectionCount: 1), .ready(connectionCount: 2), .left(until: Self.now),
            .pausing(Self.pause),
        ]
        for (state, after) in zip(Self.states, expected) {
            var endpoint = Self.endpoint(state)
            endpoint.failed(Self.refused, now: Self.now, using: &generator)
            #expect(endpoint.state == after, "\(state)")
            #expect((endpoint.furtherPause != nil) == endpoint.isReady, "\(state)")
        }
    }

    @Test func `An endpoint is left when its last ready connection is lost`() {
        var generator = SeededRandom(seed: 1)
        let left = Endpoint.State.left(until: Self.now.advanced(by: .seconds(1)))
        let expected: [Endpoint.State] = [
            .idle, .lookingUp, .connecting, left, .ready(connectionCount: 1), .left(until: Self.now),
            .pausing(Self.pause),
        ]
        for (state, after) in zip(Self.states, expected) {
            var endpoint = Self.endpoint(state)
            endpoint.lost(now: Self.now, using: &generator)
            #expect(endpoint.state == after, "\(state)")
        }
    }

    @Test func `Hastening shortens pauses and nothing else`() {
        for state in Self.states {
            var endpoint = Self.endpoint(state)
            endpoint.hasten(interval: .milliseconds(200))
            if case .pausing(let pause) = endpoint.state {
                #expect(pause.until == Self.now.advanced(by: .milliseconds(200)))
                endpoint.hasten(interval: .seconds(1))
                #expect(endpoint.state == .pausing(pause))
            } else {
                #expect(endpoint.state == state)
            }
        }
    }

    @Test func `An attempt is due when nothing is known, or the pause is over`() {
        let expected = [true, false, false, false, false, false, false]
        for (state, isDue) in zip(Self.states, expected) {
            #expect(Self.endpoint(state).isDue(now: Self.now) == isDue, "\(state)")
        }
        let endpoint = Self.endpoint(.pausing(Self.pause))
        #expect(!endpoint.isDue(now: Self.now.advanced(by: .seconds(60)).advanced(byNanoseconds: -1)))
        #expect(endpoint.isDue(now: Self.now.advanced(by: .seconds(60))))
    }

    @Test func `Pauses grow with each failure, and a good connection ends that`() {
        var generator = SeededRandom(seed: 1)
        var endpoint = Self.endpoint(.idle)
        var lengths: [Int64] = []
        for _ in 0..<3 {
            endpoint.state = .connecting
            endpoint.failed(Self.refused, now: Self.now, using: &generator)
            if case .pausing(let pause) = endpoint.state {
                lengths.append(pause.until.nanoseconds(since: Self.now) / 1_000_000)
            }
        }
        endpoint.connected()
        endpoint.lost(now: Self.now, using: &generator)
        endpoint.state = .connecting
        endpoint.failed(Self.refused, now: Self.now, using: &generator)
        if case .pausing(let pause) = endpoint.state {
            lengths.append(pause.until.nanoseconds(since: Self.now) / 1_000_000)
        }
        #expect(lengths == [1_000, 1_600, 2_560, 1_000])
    }
}
