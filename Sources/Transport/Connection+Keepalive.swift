import Base

// Peers that vanish without a word. TCP's own probes end at the next hop: a balancer answers them for a client that is
// gone. A PING is answered by the client itself.

extension Connection {
    /// Connections without a credential live for a minute only. One that is not read from, or whose output waits, has
    /// other deadlines.
    var keepaliveDeadline: Instant {
        guard limits.keepaliveInterval > .zero, isAuthenticated, phase == .open, stage == .open,
            readingPausedSince == nil, !output.isBlocked
        else { return .distantFuture }
        return keepalive.deadline(limits)
    }

    /// Asks a silent peer, or ends the connection of one that did not answer.
    func keepaliveDeadlinePassed(now: Instant) {
        if keepalive.askedAt != nil {
            metrics.connectionsSilent.add()
            return closeNow()
        }
        guard session.appendProbe(output: &output) else { return keepalive.postpone(to: now) }
        keepalive.asked(at: now)
        markDirty()
    }
}
