import Base
import Synchronization

/// The channels that have work for their loop. Any thread adds; the loop's thread takes and sleeps.
final class LoopInbox: Sendable {
    private struct State {
        var members: [any LoopMember] = []
        var isSleeping = false
        var isEnding = false
    }

    private let state = Mutex(State())
    private let pipe: WakePipe

    init() throws(SystemError) { pipe = try WakePipe() }

    var wakeDescriptor: Int32 { pipe.readDescriptor }

    /// Adds a member that holds something new and is not in the inbox yet.
    func add(_ member: any LoopMember) {
        let mustWake = state.withLock { state in
            state.members.append(member)
            defer { state.isSleeping = false }
            return state.isSleeping
        }
        if mustWake { pipe.wake() }
    }

    /// Makes the loop end when its channels are closed.
    func end() {
        state.withLock { $0.isEnding = true }
        pipe.wake()
    }

    /// Moves the members into `taken`, which must be empty. Returns whether the loop is to end.
    func take(into taken: inout [any LoopMember]) -> Bool {
        state.withLock { state in
            swap(&taken, &state.members)
            return state.isEnding
        }
    }

    var hasMembers: Bool { state.withLock { !$0.members.isEmpty } }

    /// False: there is something to take. True: a later `add` writes to the pipe.
    func prepareToSleep() -> Bool {
        state.withLock { state in
            guard state.members.isEmpty else { return false }
            state.isSleeping = true
            return true
        }
    }

    func wokeUp() { state.withLock { $0.isSleeping = false } }

    func drainSignal() { pipe.drain() }
}
