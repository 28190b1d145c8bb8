import Base

/// One address that a channel may connect to, and the outcome of its attempts so far.
struct Endpoint {
    /// The time in which no connection is made to the endpoint.
    struct Pause: Equatable {
        let since: Instant
        var until: Instant
        let failure: Failure
    }

    enum State: Equatable {
        /// Nothing is known against the endpoint. Next: `lookingUp`, `connecting`.
        case idle
        /// Its name is being looked up. Next: `idle`, `pausing`; or another list of endpoints takes its place.
        case lookingUp
        /// Next: `ready`, `pausing`.
        case connecting
        /// The server has answered on this many connections, at least one. Next: `left`.
        case ready(connectionCount: Int)
        /// The last connection was lost, or the server told its clients to leave. Other endpoints are tried first;
        /// round robin comes back at `until`. Next: `idle`, `lookingUp`, `connecting`.
        case left(until: Instant)
        /// Connecting failed. Next: `lookingUp`, `connecting`.
        case pausing(Pause)
    }

    let id: Int
    /// The place of its server in the channel's list.
    let server: Int
    /// Nil: the server's name was not looked up yet.
    let address: ResolvedAddress?
    var state = State.idle
    var backoff: ReconnectBackoff
    /// The pause after a further connection failed, while other connections are ready.
    var furtherPause: Pause?

    var isReady: Bool { if case .ready = state { true } else { false } }
    var isUnderway: Bool { state == .lookingUp || state == .connecting }

    /// Whether an attempt may begin now. An endpoint that was left is the last resort, and not counted here.
    func isDue(now: Instant) -> Bool {
        switch state {
        case .idle: true
        case .pausing(let pause): pause.until <= now
        case .lookingUp, .connecting, .ready, .left: false
        }
    }

    /// The server answered on a connection that is new.
    mutating func connected() {
        backoff.succeeded()
        furtherPause = nil
        if case .ready(let count) = state {
            state = .ready(connectionCount: count + 1)
        } else {
            state = .ready(connectionCount: 1)
        }
    }

    /// An attempt to connect, or to look up the name, failed.
    mutating func failed(_ failure: Failure, now: Instant, using generator: inout some RandomNumberGenerator) {
        let until = now.advanced(by: backoff.failed(using: &generator))
        let pause = Pause(since: now, until: until, failure: failure)
        switch state {
        case .lookingUp, .connecting: state = .pausing(pause)
        case .ready: furtherPause = pause
        // A further connection, made while others were ready, failed after those were lost.
        case .idle, .left, .pausing: break
        }
    }

    /// A connection on which the server had answered ended, or takes no more calls.
    mutating func lost(now: Instant, using generator: inout some RandomNumberGenerator) {
        guard case .ready(let count) = state else { return }
        guard count == 1 else { return state = .ready(connectionCount: count - 1) }
        furtherPause = nil
        state = .left(until: now.advanced(by: backoff.first(using: &generator)))
    }

    /// Shortens pauses to `interval` from their start.
    mutating func hasten(interval: Duration) {
        if case .pausing(var pause) = state {
            pause.hasten(interval: interval)
            state = .pausing(pause)
        }
        furtherPause?.hasten(interval: interval)
    }
}

extension Endpoint.Pause {
    fileprivate mutating func hasten(interval: Duration) { until = min(until, since.advanced(by: interval)) }
}
