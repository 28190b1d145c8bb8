import Base
import Synchronization

/// An observer of an `Auth`. It holds the newest event that was not taken yet, and no more, so that a slow observer
/// sees the present state and delays nobody.
protocol AuthObserver: Sendable {
    var interest: Interest { get }

    /// Takes an event. Called under the lock of `Auth`, in order. Returns work to be done outside of the lock.
    func offer(_ event: IDTokenEvent, of auth: Auth) -> (@Sendable () -> Void)?
}

/// The events that an observer wants.
enum Interest: Sendable {
    /// Changes of `Auth.currentUser` only: then no token needs to be refreshed ahead of time.
    case users
    /// Changes of `Auth.currentUser`, and each new ID token.
    case tokens
    /// Every event.
    case events
}

/// The newest event, and whether it is new for an observer that has got an event of a user before.
///
/// Users are compared as objects. Somebody whose session ended and who signed in again is a new `User` with the same
/// uid, and the old object is of no use any more.
struct NewestEvent: Sendable {
    private enum Told {
        case nothing
        case nobody
        case user(WeakUser)
    }

    private struct WeakUser: Sendable {
        weak let user: User?
    }

    private let interest: Interest
    private var event: IDTokenEvent?
    private var told = Told.nothing

    init(_ interest: Interest) { self.interest = interest }

    /// False: there is nothing new to take.
    mutating func put(_ event: IDTokenEvent) -> Bool {
        if case .profileChanged = event.change {
            // A waiting event has the same user object, which has the new properties already.
            guard interest == .events, self.event == nil else { return false }
        }
        self.event = event
        return true
    }

    mutating func take() -> IDTokenEvent? {
        guard let event = event.take() else { return nil }
        if interest == .users, wasTold(of: event.user) { return nil }
        told = event.user.map { .user(WeakUser(user: $0)) } ?? .nobody
        return event
    }

    private func wasTold(of user: User?) -> Bool {
        switch told {
        case .nothing: false
        case .nobody: user == nil
        case .user(let last): user != nil && last.user === user
        }
    }
}

/// The events of one iterator, which one task reads.
final class EventMailbox: AuthObserver {
    private struct State {
        var newest: NewestEvent
        var waiter: Promise<Void>?
        var isEnded = false
    }

    private enum Next {
        case event(IDTokenEvent?)
        case wait(Promise<Void>)
    }

    let interest: Interest
    private let state: Mutex<State>

    init(_ interest: Interest) {
        self.interest = interest
        self.state = Mutex(State(newest: NewestEvent(interest)))
    }

    func offer(_ event: IDTokenEvent, of auth: Auth) -> (@Sendable () -> Void)? {
        let waiter = state.withLock { state in
            state.newest.put(event) ? state.waiter.take() : nil
        }
        guard let waiter else { return nil }
        return { waiter.succeed(()) }
    }

    func end() {
        let waiter = state.withLock { state in
            state.isEnded = true
            return state.waiter.take()
        }
        waiter?.succeed(())
    }

    /// The next event. Nil: the mailbox has ended, or the task was cancelled, which ends it.
    func next() async -> IDTokenEvent? {
        await withTaskCancellationHandler {
            while true {
                let next = state.withLock { state -> Next in
                    if state.isEnded { return .event(nil) }
                    if let event = state.newest.take() { return .event(event) }
                    precondition(state.waiter == nil, "two tasks read one iterator")
                    let waiter = Promise<Void>()
                    state.waiter = waiter
                    return .wait(waiter)
                }
                switch next {
                case .event(let event): return event
                // Only ever succeeds.
                case .wait(let waiter): _ = try? await waiter.value()
                }
            }
        } onCancel: {
            end()
        }
    }
}
