import Base

/// When a peer was heard of, and the PING that asks whether it is still there. A value.
struct Keepalive {
    /// When bytes came last, or when it was found that the peer cannot be asked.
    private(set) var heardAt: Instant
    /// When the PING was sent that has not been answered.
    private(set) var askedAt: Instant?
    /// What `Connection.lastReadAt` was before the last read: an answer to a PING is no traffic.
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

    /// What `Connection.lastReadAt` is when all that came was the answer to a PING.
    var lastTraffic: Instant { readBefore }

    func deadline(_ limits: Limits) -> Instant {
        askedAt?.advanced(by: limits.keepaliveTimeout) ?? heardAt.advanced(by: limits.keepaliveInterval)
    }
}
