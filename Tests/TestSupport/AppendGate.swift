import Base
import Synchronization

/// Holds a node of a cluster up on its way to the engine: the entry that it appends next waits until the gate is
/// opened.
///
/// A test that closes the gate has to open it in any case, because the node cannot be stopped while it waits.
public final class AppendGate: Sendable {
    private enum State: Sendable { case open, closed, holding }

    private let state = Mutex(State.open)
    private let opened = Semaphore()

    public init() {}

    public func close() { state.withLock { $0 = .closed } }

    /// Lets the waiting entry pass, and all that come later.
    public func open() {
        let wasHolding = state.withLock { state in
            defer { state = .open }
            return state == .holding
        }
        if wasHolding { opened.signal() }
    }

    /// Whether an entry waits.
    public var isHolding: Bool { state.withLock { $0 == .holding } }

    /// The node's question to the engine waits here. The writer's thread only.
    func pass(_ question: MemoryJournal.Question) {
        guard question == .append else { return }
        let isHeld = state.withLock { state in
            guard state == .closed else { return false }
            state = .holding
            return true
        }
        if isHeld { opened.wait() }
    }
}
