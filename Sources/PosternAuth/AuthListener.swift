import Base
import Synchronization

/// A function that is called with each new state: on its actor if it has one, else on a thread that lives while there
/// is news, so that it may block and delays nobody but itself.
final class AuthListener: AuthObserver {
    private struct State {
        var newest: NewestEvent
        /// Only while an event waits: a listener does not keep its `Auth` alive.
        var auth: Auth?
        var isRunning = false
        var isRemoved = false
    }

    let interest: Interest
    private let body: @isolated(any) @Sendable (Auth, User?) -> Void
    private let state: Mutex<State>

    init(_ interest: Interest, _ body: @escaping @isolated(any) @Sendable (Auth, User?) -> Void) {
        self.interest = interest
        self.body = body
        self.state = Mutex(State(newest: NewestEvent(interest)))
    }

    func offer(_ event: IDTokenEvent, of auth: Auth) -> (@Sendable () -> Void)? {
        let mustStart = state.withLock { state in
            guard !state.isRemoved, state.newest.put(event) else { return false }
            state.auth = auth
            defer { state.isRunning = true }
            return !state.isRunning
        }
        guard mustStart else { return nil }
        return { ListenerThread.run { await self.run() } }
    }

    func remove() { state.withLock { $0.isRemoved = true } }

    private func run() async {
        while let (auth, event) = next() { await body(auth, event.user) }
    }

    private func next() -> (Auth, IDTokenEvent)? {
        state.withLock { state in
            if !state.isRemoved, let event = state.newest.take(), let auth = state.auth.take() { return (auth, event) }
            state.auth = nil
            state.isRunning = false
            return nil
        }
    }
}

/// What `addStateDidChangeListener` returns.
public typealias AuthStateDidChangeListenerHandle = ListenerHandle

/// What `addIDTokenDidChangeListener` returns.
public typealias IDTokenDidChangeListenerHandle = ListenerHandle

/// A listener's registration. The listener stays until `remove`, also when this is dropped.
public final class ListenerHandle: Sendable {
    private let removal: @Sendable () -> Void

    init(_ removal: @escaping @Sendable () -> Void) { self.removal = removal }

    /// The listener is not called again; a call that is under way ends by itself. Again: nothing happens.
    public func remove() { removal() }
}
