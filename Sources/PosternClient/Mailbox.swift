import Base
import Messages
import Synchronization
import Wire

/// What callers ask of the channel's thread, in order. Any thread posts; the channel's thread takes and sleeps.
///
/// Bounded by the number of callers: each waits for its call, its message or its stream's window.
final class Mailbox: Sendable {
    enum Command: Sendable {
        case start(Call)
        /// The caller gave up.
        case cancel(Call)
        case send(Call, any Message, Promise<Void>)
        case finishSending(Call)
        /// The reader took a message of this size.
        case consumed(Call, payloadByteCount: Int)
        /// A worker has done what was to be done before connecting.
        case prepared(Int, Preparation.Result)
    }

    private struct State {
        var commands: [Command] = []
        var isSleeping = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let pipe = WakePipe()

    var wakeDescriptor: Int32 { pipe.readDescriptor }

    /// False: the channel is closed, and the command is dropped.
    @discardableResult
    func post(_ command: Command) -> Bool {
        let (isAccepted, mustWake) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.commands.append(command)
            defer { state.isSleeping = false }
            return (true, state.isSleeping)
        }
        if mustWake { pipe.wake() }
        return isAccepted
    }

    /// Nothing is accepted any more; the thread settles what is there and ends.
    func close() {
        state.withLock { $0.isClosed = true }
        pipe.wake()
    }

    /// Moves everything posted into `commands`, which must be empty. Returns whether the mailbox was closed.
    func take(into commands: inout [Command]) -> Bool {
        state.withLock { state in
            swap(&commands, &state.commands)
            return state.isClosed
        }
    }

    /// False: there is something to take. True: a later `post` writes to the pipe.
    func prepareToSleep() -> Bool {
        state.withLock { state in
            guard state.commands.isEmpty, !state.isClosed else { return false }
            state.isSleeping = true
            return true
        }
    }

    func wokeUp(bySignal: Bool) {
        state.withLock { $0.isSleeping = false }
        if bySignal { pipe.drain() }
    }
}
