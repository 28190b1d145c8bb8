import Base
import Synchronization

extension Auth {
    /// The current user now, and again each time another user or nobody is signed in: `for await user in
    /// auth.authStateChanges`.
    public var authStateChanges: AuthStateChangesSequence { AuthStateChangesSequence(auth: self) }

    /// The current user now, and again each time the user or the ID token changes.
    public var idTokenChanges: IDTokenChangesSequence { IDTokenChangesSequence(auth: self) }

    /// The events of the current user and its tokens, each with its cause.
    public var idTokenEvents: IDTokenEventsSequence { IDTokenEventsSequence(auth: self) }

    /// Calls `listener` soon with the current user, and again each time another user or nobody is signed in.
    ///
    /// A closure that is written on an actor, for example in a `@MainActor` class, is called on that actor. Any other
    /// closure is called on a thread of its own, where it may block. Calls come one after the other. A slow listener
    /// delays no other listener; it skips to the newest state. The listener stays until the handle's `remove`.
    @discardableResult
    public func addStateDidChangeListener(
        @_inheritActorContext _ listener: @escaping @isolated(any) @Sendable (Auth, User?) -> Void
    ) -> AuthStateDidChangeListenerHandle {
        add(AuthListener(.users, listener))
    }

    /// Calls `listener` as `addStateDidChangeListener` does, and also each time the current user gets a new ID token.
    ///
    /// While such a listener is there, ID tokens are refreshed before they expire.
    @discardableResult
    public func addIDTokenDidChangeListener(
        @_inheritActorContext _ listener: @escaping @isolated(any) @Sendable (Auth, User?) -> Void
    ) -> IDTokenDidChangeListenerHandle {
        add(AuthListener(.tokens, listener))
    }

    /// Does the same as `handle.remove()`.
    public func removeStateDidChangeListener(_ handle: AuthStateDidChangeListenerHandle) { handle.remove() }

    /// Does the same as `handle.remove()`.
    public func removeIDTokenDidChangeListener(_ handle: IDTokenDidChangeListenerHandle) { handle.remove() }

    private func add(_ listener: AuthListener) -> ListenerHandle {
        let id: Int = add(listener)
        // Weak: a closure that uses the object which keeps the handle would otherwise keep that object for ever.
        return ListenerHandle { [weak self, weak listener] in
            listener?.remove()
            self?.removeObserver(id)
        }
    }

    /// Adds an observer, which gets the present state first and then every event.
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
        // The observer may be released here, and code of the application run at that: after the lock.
        _ = state.withLock { state in
            let removed = state.observers.removeValue(forKey: id)
            rearm(&state)
            return removed
        }
    }
}
