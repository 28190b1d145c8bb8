import Base
import Reactor
import Synchronization

// How the server stops: it tells all clients to go elsewhere, lets calls in flight end, and closes what is left.
//
// A connection may get its place just before the stop begins and enter just after. So each step is taken under the lock
// of the connections: a connection is among those that the step visits, or it sees the step when it enters.

extension Server {
    /// How far the server has come in stopping.
    enum Stop: Comparable, Sendable {
        /// Next: `announced`, `closing`.
        case none
        /// Clients are told to go elsewhere, and the calls that they send before they know are taken. Next: `refusing`.
        case announced
        /// New calls are refused, and calls in flight end. Next: `closing`.
        case refusing
        case closing

        /// Tells a connection that the server has come so far.
        func tell(_ connection: isolated Connection) {
            switch self {
            case .none: break
            case .announced: connection.beginDrain()
            case .refusing: connection.finishDrain()
            case .closing: connection.closeNow()
            }
        }
    }

    /// The last step that was taken, for tests.
    var stop: Stop { state.withLock { $0.stop } }

    /// Takes a step, and begins to tell all connections. Returns a promise for each loop, as `beginVisits` does.
    private func take(_ step: Stop) -> [Promise<Void>] {
        let connections = state.withLock { state in
            state.stop = max(state.stop, step)
            return Array(state.connections.values)
        }
        return beginVisits(of: connections) { step.tell($0) }
    }

    /// Tells every client to go elsewhere, lets calls in flight end, and returns when all connections are closed or
    /// `Limits.drainTimeout` is over. The loops tell their clients side by side, however busy another loop is.
    public func drain() async {
        proxyIntake.close()
        let told = take(.announced)
        let emptied = Promise<Void>()
        let isEmpty = state.withLock { state in
            if !state.isEmpty { state.emptied = emptied }
            return state.isEmpty
        }
        if isEmpty { emptied.succeed(()) }
        let announcement: Duration = min(.milliseconds(200), limits.drainTimeout)
        loops.loops[0].callOnce(after: announcement + limits.drainTimeout) { emptied.succeed(()) }
        for ended in told { try? await ended.value() }
        // Calls that clients sent before they knew are still on their way. A client that answers PING shows when its
        // calls have come. Calls of the other clients are taken during the announcement, and then no new call is.
        await pause(announcement)
        for ended in take(.refusing) { try? await ended.value() }
        try? await emptied.value()
        await closeAll()
    }

    /// Ends every connection, whatever is in flight.
    public func closeAll() async {
        proxyIntake.close()
        for ended in take(.closing) { try? await ended.value() }
    }

    private func pause(_ duration: Duration) async {
        let passed = Promise<Void>()
        loops.loops[0].callOnce(after: duration) { passed.succeed(()) }
        try? await passed.value()
    }
}

extension EventLoop {
    /// Calls `body` on the loop once, after `delay`; from any thread.
    func callOnce(after delay: Duration, _ body: @escaping @Sendable () -> Void) {
        run { [self] in
            let holder = TimerHolder()
            holder.timer = Timer(on: self) {
                body()
                holder.timer = nil
            }
            holder.timer?.arm(after: delay)
        }
    }
}

/// Keeps a one-shot timer alive until it fired.
private final class TimerHolder {
    var timer: Timer?
}
