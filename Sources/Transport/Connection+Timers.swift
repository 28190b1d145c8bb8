import Base
import Reactor
import Wire

extension Connection {
    /// How long a connection is silent before it gives back the memory of its last burst.
    private static let trimAfter = Duration.seconds(5)
    private static let lookAgainAfter = Duration.milliseconds(100)

    /// Sets the one timer to the earliest limit. Moving it later costs a comparison.
    func armTimer(now: Instant) { timer?.arm(at: nextDeadline(now: now)) }

    private func nextDeadline(now: Instant) -> Instant {
        var deadline = Instant.distantFuture
        func limit(_ other: Instant) { if other < deadline { deadline = other } }
        if output.isBlocked { limit(lastWriteProgressAt.advanced(by: limits.writeTimeout)) }
        switch phase {
        case .open, .peerClosed:
            limit(idleDeadline)
            limit(keepaliveDeadline)
            limit(handshakeDeadline)
            limit(firstRequestDeadline)
            limit(partialFrameDeadline)
            if let deadline = session.deadline { limit(deadline) }
            if !isAuthenticated { limit(credentialDeadline) }
            if let pausedDeadline { limit(pausedDeadline) }
            // No event tells that others have given memory back.
            if pausedDeadline != nil || callsMayAwaitMemory { limit(now.advanced(by: Self.lookAgainAfter)) }
        // The limits above do not count any more: the limit that ended the connection has passed, and a timer set to it
        // would fire in every turn.
        case .closing, .lingering: limit(lingersUntil)
        case .closed: break
        }
        for call in calls.values { limit(call.deadline) }
        let trim = lastReadAt.advanced(by: Self.trimAfter)
        if trim > now { limit(trim) }
        return deadline
    }

    private var idleDeadline: Instant {
        calls.isEmpty && isAuthenticated ? lastReadAt.advanced(by: limits.idleTimeout) : .distantFuture
    }

    private var firstRequestDeadline: Instant {
        session.hasSeenRequest
            ? .distantFuture : pauses.deadline(of: limits.firstRequestTimeout, begun: acceptedAt)
    }

    /// Calls in flight do not extend this deadline: otherwise a call that never ends would hold the connection for
    /// ever.
    private var credentialDeadline: Instant {
        unauthenticatedSince.advanced(by: limits.connectionUnauthenticatedMax)
    }

    /// The deadline of a frame that has begun. A client that is not read from cannot go on with its frame and gets more
    /// time, but not while memory is short, because half a frame holds memory for nothing.
    private var partialFrameDeadline: Instant {
        guard let since = session.partialSince else { return .distantFuture }
        return share.memory.pressure >= .scarce
            ? since.advanced(by: limits.frameTimeout) : pauses.deadline(ofFrame: limits.frameTimeout)
    }

    /// The deadline of a connection that is not read from; after it the connection is ended. It is longer than any call
    /// of the client can take, and only reading would show whether the client is still there.
    private var pausedDeadline: Instant? {
        guard let since = readingPausedSince, !output.isBlocked else { return nil }
        return since.advanced(by: limits.requestTimeoutMax).advanced(by: limits.writeTimeout)
    }

    func isSilent(at now: Instant) -> Bool { lastReadAt.advanced(by: Self.trimAfter) <= now }

    func timerFired() {
        guard phase != .closed else { return }
        let now = Instant.now
        if phase == .lingering || phase == .closing, lingersUntil <= now { return closeNow() }
        if output.isBlocked && lastWriteProgressAt.advanced(by: limits.writeTimeout) <= now { return closeNow() }
        if phase.isServing {
            if handshakeDeadline <= now {
                metrics.handshakesTimedOut.add()
                return closeNow()
            }
            if firstRequestDeadline <= now {
                endSession(.firstRequestTimeout)
            } else if partialFrameDeadline <= now {
                endSession(.frameTimeout)
            } else if !isAuthenticated && credentialDeadline <= now {
                metrics.connectionsWithoutCredentialEnded.add()
                endWithoutCredential(.credentialMissing)
            } else if let pausedDeadline, pausedDeadline <= now {
                endSession(.writeTimeout)
            } else if idleDeadline <= now {
                endSession(.idleTimeout)
            } else if let deadline = session.deadline, deadline <= now {
                perform(session.deadlinePassed(now: now, output: &output))
            } else if keepaliveDeadline <= now {
                keepaliveDeadlinePassed(now: now)
            }
        }
        guard phase != .closed else { return }
        expireCalls(now: now)
        if isSilent(at: now) { releaseIdleMemory() }
        account()
        if phase != .closed { resumeReadingIfDrained() }
        if phase != .closed { armTimer(now: now) }
    }
}
