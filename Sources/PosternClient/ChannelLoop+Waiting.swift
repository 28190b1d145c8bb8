import Base
import Glibc
import Messages

// How the channel's thread sleeps: until a command comes, a socket is ready, or a deadline passes.

extension ChannelLoop {
    func waitForEvents() {
        let watched = connections.all
        var descriptors = [pollfd(fd: mailbox.wakeDescriptor, events: Int16(POLLIN), revents: 0)]
        var wakeUp = min(nextDeadline, nextConnecting)
        for connection in watched {
            descriptors.append(
                pollfd(fd: connection.stream.socket.descriptor, events: connection.wantedEvents, revents: 0))
            wakeUp = min(wakeUp, connection.nextCheck)
        }
        guard mailbox.prepareToSleep() else {
            // Answers are read as well while commands keep coming.
            poll(&descriptors, nfds_t(descriptors.count), 0)
            return handle(descriptors, watched)
        }
        poll(&descriptors, nfds_t(descriptors.count), milliseconds(until: wakeUp))
        mailbox.wokeUp(bySignal: descriptors[0].revents != 0)
        handle(descriptors, watched)
    }

    private func handle(_ descriptors: [pollfd], _ watched: [ClientConnection]) {
        let now = Instant.now
        for (index, connection) in watched.enumerated() {
            let events = descriptors[index + 1].revents
            if events != 0 { connection.becameReady(events, now: now) }
            connection.checkTime(now: now)
        }
        giveUpOverdue(now: now)
        if nextDeadline <= now { failOverdue(now: now) }
    }

    private func failOverdue(now: Instant) {
        nextDeadline = .distantFuture
        for call in waiting + unopened + connections.all.flatMap({ Array($0.inFlight) }) {
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

    /// The time until `instant`, rounded up: waking up too early would mean to look again at once. -1: for ever.
    private func milliseconds(until instant: Instant) -> Int32 {
        if instant == .distantFuture { return -1 }
        let nanoseconds = max(0, instant.nanoseconds(since: .now))
        return Int32(clamping: (nanoseconds + 999_999) / 1_000_000)
    }
}
