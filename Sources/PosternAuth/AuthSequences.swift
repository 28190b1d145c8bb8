/// The current user, and then each time another one is signed in, or nobody.
///
/// Every iterator listens for itself, from when it is made: the first element is the state then. One that is read
/// slowly skips to the newest state. It ends when its task is cancelled, and keeps its `Auth` alive until then.
public struct AuthStateChangesSequence: AsyncSequence, Sendable {
    public typealias Element = User?
    public typealias Failure = Never

    let auth: Auth

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: Subscription(auth, .users)) }

    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        public mutating func next() async -> User?? { await subscription.mailbox.next().map(\.user) }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> User?? { await next() }
    }
}

/// As `AuthStateChangesSequence`, and also each time the current user has another ID token.
///
/// While there is an iterator, ID tokens are refreshed before they run out.
public struct IDTokenChangesSequence: AsyncSequence, Sendable {
    public typealias Element = User?
    public typealias Failure = Never

    let auth: Auth

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: Subscription(auth, .tokens)) }

    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        public mutating func next() async -> User?? { await subscription.mailbox.next().map(\.user) }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> User?? { await next() }
    }
}

/// As `IDTokenChangesSequence`, with what happened: signed in, signed out and why, refreshed and why; and each time the
/// user has another profile.
///
/// Who reads slowly is told of the newest event only.
public struct IDTokenEventsSequence: AsyncSequence, Sendable {
    public typealias Element = IDTokenEvent
    public typealias Failure = Never

    let auth: Auth

    public func makeAsyncIterator() -> Iterator { Iterator(subscription: Subscription(auth, .events)) }

    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        public mutating func next() async -> IDTokenEvent? { await subscription.mailbox.next() }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> IDTokenEvent? { await next() }
    }
}

// An iterator is one task's.
@available(*, unavailable) extension AuthStateChangesSequence.Iterator: Sendable {}
@available(*, unavailable) extension IDTokenChangesSequence.Iterator: Sendable {}
@available(*, unavailable) extension IDTokenEventsSequence.Iterator: Sendable {}

/// An iterator's place among the observers; given up with its last copy.
final class Subscription: Sendable {
    let mailbox: EventMailbox
    private let auth: Auth
    private let id: Int

    init(_ auth: Auth, _ interest: Interest) {
        self.auth = auth
        self.mailbox = EventMailbox(interest)
        self.id = auth.add(mailbox)
    }

    deinit { auth.removeObserver(id) }
}
