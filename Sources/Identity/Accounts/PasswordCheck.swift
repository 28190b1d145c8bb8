import Synchronization

/// How far the check of a password came, for whoever decides afterwards whether it was a guess.
///
/// A client can cancel a call, or let its deadline pass, while the hash runs: a wrong password that was looked at is a
/// guess all the same. Any thread.
public final class PasswordCheck: Sendable {
    private let begun = Atomic(false)
    private let right = Atomic(false)

    public init() {}

    func begin() { begun.store(true, ordering: .releasing) }
    func foundRight() { right.store(true, ordering: .releasing) }

    /// The password was looked at, and not found right so far.
    public var mayBeGuess: Bool { begun.load(ordering: .acquiring) && !right.load(ordering: .acquiring) }
}
