import Base

// Finds peers that vanished without closing the connection. TCP's own probes end at the next hop: a load balancer
// answers them for a client that is gone. A PING is answered by the client itself.

extension Connection {
    /// Never for a connection without a credential, which lives for a minute only. A connection that is not read from,
    /// or whose output waits, has other deadlines.
    var keepaliveDeadline: Instant {
        guard limits.keepaliveInterval > .zero, isAuthenticated, phase == .open, stage == .open,
            !pauses.isPaused, !output.isBlocked
        else { return .distantFuture }
        return keepalive.deadline(timeout: limits.keepaliveTimeout, interval: limits.keepaliveInterval)
    }

    /// Sends a PING to a silent peer, or closes the connection if the peer did not answer the last PING.
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
