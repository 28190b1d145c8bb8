import Base

/// When a peer was last heard, and the PING that asks whether it is still there. A value.
struct Keepalive {
    /// The time of the last input, or the time at which the peer could not be asked.
    private(set) var heardAt: Instant
    /// The time of the PING that has not been answered.
    private(set) var askedAt: Instant?
    /// The value of `Connection.lastReadAt` before the last read: an answer to a PING is no traffic.
    private var readBefore: Instant

    init(heardAt: Instant) {
        self.heardAt = heardAt
        self.readBefore = heardAt
    }

    mutating func heard(at now: Instant, lastReadAt: Instant) {
        (heardAt, askedAt, readBefore) = (now, nil, lastReadAt)
    }

    mutating func asked(at now: Instant) { askedAt = now }

    /// The peer cannot be asked, or cannot be heard: it gets another interval.
    mutating func postpone(to now: Instant) { (heardAt, askedAt) = (now, nil) }

    /// The value for `Connection.lastReadAt` when the only input was the answer to a PING.
    var lastTraffic: Instant { readBefore }

    /// `timeout`: for an answer. `interval`: how long a peer may be silent.
    func deadline(timeout: Duration, interval: Duration) -> Instant {
        askedAt?.advanced(by: timeout) ?? heardAt.advanced(by: interval)
    }
}
