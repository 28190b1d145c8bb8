import Base
import Synchronization

extension Auth {
    /// The user, now and each time it is another one: `for await user in auth.authStateChanges`.
    public var authStateChanges: AuthStateChangesSequence { AuthStateChangesSequence(auth: self) }

    /// The user, now and each time it or its ID token is another one.
    public var idTokenChanges: IDTokenChangesSequence { IDTokenChangesSequence(auth: self) }

    /// What happens to the user and its tokens, with the causes.
    public var idTokenEvents: IDTokenEventsSequence { IDTokenEventsSequence(auth: self) }

    /// Calls `listener` soon with the current user, and each time it is another one.
    ///
    /// A closure that is written on an actor, for example in a `@MainActor` class, is called there; any other on a
    /// thread of its own, where it may block. One call comes after the other; a slow listener delays nobody else, and
    /// is then called with the newest state. It stays until the handle's `remove`.
    @discardableResult
    public func addStateDidChangeListener(
        @_inheritActorContext _ listener: @escaping @isolated(any) @Sendable (Auth, User?) -> Void
    ) -> AuthStateDidChangeListenerHandle {
        add(AuthListener(.users, listener))
    }

    /// The same, and also each time the current user has another ID token, which is refreshed before it runs out.
    @discardableResult
    public func addIDTokenDidChangeListener(
        @_inheritActorContext _ listener: @escaping @isolated(any) @Sendable (Auth, User?) -> Void
    ) -> IDTokenDidChangeListenerHandle {
        add(AuthListener(.tokens, listener))
    }

    /// As `handle.remove()`.
    public func removeStateDidChangeListener(_ handle: AuthStateDidChangeListenerHandle) { handle.remove() }

    /// As `handle.remove()`.
    public func removeIDTokenDidChangeListener(_ handle: IDTokenDidChangeListenerHandle) { handle.remove() }

    private func add(_ listener: AuthListener) -> ListenerHandle {
        let id: Int = add(listener)
        return ListenerHandle { [weak self] in
            listener.remove()
            self?.removeObserver(id)
        }
    }

    /// From now on it is told everything, beginning with the present state.
    func add(_ observer: any AuthObserver) -> Int {
        let (id, wakeUp) = state.withLock { state in
            state.lastObserverID += 1
            state.observers[state.lastObserverID] = observer
            rearm(&state)
            let event = IDTokenEvent(user: state.currentUser, change: .initialized)
            return (state.lastObserverID, observer.offer(event, of: self))
        }
        wakeUp?()
        return id
    }

    func removeObserver(_ id: Int) {
        state.withLock { state in
            state.observers[id] = nil
            rearm(&state)
        }
    }
}
