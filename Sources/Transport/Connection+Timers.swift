import Base
import Reactor
import Wire

extension Connection {
    /// A connection that said nothing for so long gives back the memory of its last burst.
    private static let trimAfter = Duration.seconds(5)

    /// Sets the one timer to the earliest limit there is. Moving it later costs a comparison.
    func armTimer(now: Instant) { timer?.arm(at: nextDeadline(now: now)) }

    private func nextDeadline(now: Instant) -> Instant {
        var deadline = idleDeadline
        func limit(_ other: Instant) { if other < deadline { deadline = other } }
        if !hasSeenRequest { limit(acceptedAt.advanced(by: limits.firstRequestTimeout)) }
        if let since = decoder.partialSince, !isReadingPaused { limit(since.advanced(by: limits.frameTimeout)) }
        if isWriteBlocked { limit(lastWriteProgressAt.advanced(by: limits.writeTimeout)) }
        if phase == .lingering { limit(lingersUntil) }
        for call in calls.values { limit(call.deadline) }
        let trim = lastReadAt.advanced(by: Self.trimAfter)
        if trim > now { limit(trim) }
        return deadline
    }

    private var idleDeadline: Instant {
        guard calls.isEmpty else { return .distantFuture }
        return lastReadAt.advanced(by: isAuthenticated ? limits.idleTimeout : limits.idleTimeoutUnauthenticated)
    }

    func timerFired() {
        guard phase != .closed else { return }
        let now = Instant.now
        if phase == .lingering && lingersUntil <= now { return closeNow() }
        if isWriteBlocked && lastWriteProgressAt.advanced(by: limits.writeTimeout) <= now { return closeNow() }
        if phase == .open || phase == .peerClosed {
            if !hasSeenRequest && acceptedAt.advanced(by: limits.firstRequestTimeout) <= now {
                perform(state.violated(.firstRequestTimeout))
            } else if let since = decoder.partialSince, !isReadingPaused,
                since.advanced(by: limits.frameTimeout) <= now
            {
                perform(state.violated(.frameTimeout))
            } else if idleDeadline <= now {
                perform(state.violated(.idleTimeout))
            }
        }
        expireCalls(now: now)
        if lastReadAt.advanced(by: Self.trimAfter) <= now {
            input.releaseIfIdle()
            output.releaseIfIdle()
            backlog.releaseIfIdle()
        }
        if phase != .closed { armTimer(now: now) }
    }
}
