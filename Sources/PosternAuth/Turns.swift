import Base
import Synchronization

/// The order of a user's calls to the server: one after the other, in the order in which they asked.
///
/// Each call that changes the session replaces its refresh token. A refresh at the same time would present the old
/// token, which the server must take for a stolen copy.
final class Turns: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [Promise<Void>] = []
    }

    private let state = Mutex(State())

    /// Waits for the turn. A cancelled task waits too: its turn is short, because the task then finds itself cancelled.
    func take() async {
        let turn = state.withLock { state -> Promise<Void>? in
            guard state.isTaken else {
                state.isTaken = true
                return nil
            }
            let turn = Promise<Void>()
            state.waiting.append(turn)
            return turn
        }
        // Only ever succeeds.
        _ = try? await turn?.value()
    }

    func giveBack() {
        let next = state.withLock { state -> Promise<Void>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.isTaken = false
            return nil
        }
        next?.succeed(())
    }
}
