import Base
import Synchronization

/// The end of a user's session at the server. It outlives the `User` object, so that callers can wait for it.
final class SessionEnd: Sendable {
    private struct State {
        var isTried = false
        var waiters: [Promise<Void>] = []
    }

    private let state = Mutex(State())

    /// Lets all waiters go on: the server was told, cannot be told, or need not be told.
    func wasTried() {
        let waiters = state.withLock { state in
            state.isTried = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.succeed(()) }
    }

    /// Returns sooner when the task is cancelled.
    func wait(atMost bound: Duration, by clock: AuthClock) async {
        let waiter = Promise<Void>()
        let isTried = state.withLock { state in
            if !state.isTried { state.waiters.append(waiter) }
            return state.isTried
        }
        guard !isTried else { return }
        let timer = Task {
            if (try? await clock.sleep(bound)) != nil { waiter.succeed(()) }
        }
        _ = try? await waiter.cancellableValue()
        timer.cancel()
    }
}
