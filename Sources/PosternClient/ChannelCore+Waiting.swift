import Base
import Messages

// A channel's timers: the work that is due, and the time at which more becomes due.

extension ChannelCore {
    /// The next time at which `checkTimes` has something to do.
    func findWakeUp() -> Instant {
        var next = min(nextDeadline, nextConnecting)
        for connection in connections.all { next = min(next, connection.nextCheck) }
        return next
    }

    func checkTimes(now: Instant) {
        for connection in connections.all { connection.checkTime(now: now) }
        giveUpOverdue(now: now)
        if nextDeadline <= now { failOverdue(now: now) }
    }

    private func failOverdue(now: Instant) {
        nextDeadline = .distantFuture
        for call in waiting + unopened + connections.all.flatMap(\.unanswered) {
            if call.deadline <= now {
                cancel(call, .deadlineExceeded, overdue(call, now: now))
            } else {
                nextDeadline = min(nextDeadline, call.deadline)
            }
        }
    }

    /// The failure of a call that has reached its deadline. A call that found no connection was never sent.
    private func overdue(_ call: Call, now: Instant) -> Failure {
        guard case .waiting = call.placement, call.refusalCount == 0 else { return .deadlinePassed }
        if let outage = balancer.outage(now: now) { return outage }
        let isConnecting = !connections.taking.contains(where: \.isWelcomed)
        return isConnecting ? .connectionFailed("No connection before the deadline.") : .deadlinePassed
    }
}
