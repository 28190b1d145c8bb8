import Base
import Synchronization

/// A listener's closure, called with each new state. The closure runs on its actor if it has one. Otherwise it runs on
/// a thread that lives while events wait, where it may block.
final class AuthListener: AuthObserver {
    private struct State {
        var newest: NewestEvent
        /// The `Auth`, only while an event waits: a listener does not keep its `Auth` alive.
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

/// The handle that `Auth.addStateDidChangeListener` returns.
public typealias AuthStateDidChangeListenerHandle = ListenerHandle

/// The handle that `Auth.addIDTokenDidChangeListener` returns.
public typealias IDTokenDidChangeListenerHandle = ListenerHandle

/// The registration of a listener. The listener stays until `remove`, even if the handle is dropped.
///
/// ```swift
/// let handle = auth.addStateDidChangeListener { _, user in print(user?.uid ?? "signed out") }
/// handle.remove()
/// ```
public final class ListenerHandle: Sendable {
    private let removal: @Sendable () -> Void

    init(_ removal: @escaping @Sendable () -> Void) { self.removal = removal }

    /// Stops the calls. A call that is under way ends by itself. A second `remove` does nothing.
    public func remove() { removal() }
}
