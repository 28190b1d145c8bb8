/// The current user, and then the user, or nil, each time another user or nobody is signed in.
///
/// Each iterator listens from the moment it is made; its first element is the state at that moment. A slow reader skips
/// to the newest state. The sequence ends when the reading task is cancelled, and keeps its `Auth` alive until then.
///
/// ```swift
/// for await user in auth.authStateChanges {
///     print(user?.uid ?? "nobody is signed in")
/// }
/// ```
public struct AuthStateChangesSequence: AsyncSequence, Sendable {
    /// The user, or nil while nobody is signed in.
    public typealias Element = User?
    /// Reading never fails.
    public typealias Failure = Never

    let auth: Auth

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: Subscription(auth, .users)) }

    /// Listens for one reader.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next state, when there is one. The outer nil is the end: the task was cancelled.
        public mutating func next() async -> User?? { await subscription.mailbox.next().map(\.user) }

        /// The same, called by `for await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> User?? { await next() }
    }
}

/// The current user, and then the user, or nil, each time the user or its ID token changes.
///
/// It behaves as `AuthStateChangesSequence` does. While an iterator exists, ID tokens are refreshed before they expire.
///
/// ```swift
/// for await user in auth.idTokenChanges {
///     if let token = try await user?.idToken() { print("use", token.count, "bytes") }
/// }
/// ```
public struct IDTokenChangesSequence: AsyncSequence, Sendable {
    /// The user, or nil while nobody is signed in.
    public typealias Element = User?
    /// Reading never fails.
    public typealias Failure = Never

    let auth: Auth

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: Subscription(auth, .tokens)) }

    /// Listens for one reader.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next state, when there is one. The outer nil is the end: the task was cancelled.
        public mutating func next() async -> User?? { await subscription.mailbox.next().map(\.user) }

        /// The same, called by `for await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> User?? { await next() }
    }
}

/// The events of the current user: signed in, signed out and why, tokens refreshed and why, profile changed.
///
/// It behaves as `IDTokenChangesSequence` does. A slow reader gets the newest event only.
///
/// ```swift
/// for await event in auth.idTokenEvents {
///     if case .signedOut(let error?) = event.change { print("The session ended:", error.reason) }
/// }
/// ```
public struct IDTokenEventsSequence: AsyncSequence, Sendable {
    /// One event.
    public typealias Element = IDTokenEvent
    /// Reading never fails.
    public typealias Failure = Never

    let auth: Auth

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: Subscription(auth, .events)) }

    /// Listens for one reader.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: Subscription

        /// The next event, when there is one. Nil: the task was cancelled.
        public mutating func next() async -> IDTokenEvent? { await subscription.mailbox.next() }

        /// The same, called by `for await`.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> IDTokenEvent? { await next() }
    }
}

// An iterator belongs to one task.
@available(*, unavailable) extension AuthStateChangesSequence.Iterator: Sendable {}
@available(*, unavailable) extension IDTokenChangesSequence.Iterator: Sendable {}
@available(*, unavailable) extension IDTokenEventsSequence.Iterator: Sendable {}

/// An iterator's registration as an observer. The registration ends with its last copy.
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
