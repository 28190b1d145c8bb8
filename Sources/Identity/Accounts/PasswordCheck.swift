import Synchronization

/// The progress of a password check, from which it is decided afterwards whether the attempt was a guess.
///
/// A client can cancel a call, or let its deadline pass, while the hash runs. A wrong password that was checked is a
/// guess all the same. Any thread.
public final class PasswordCheck: Sendable {
    private let begun = Atomic(false)
    private let right = Atomic(false)

    public init() {}

    func begin() { begun.store(true, ordering: .releasing) }
    func foundRight() { right.store(true, ordering: .releasing) }

    /// True if the check of the password began, and has not found it right so far.
    public var mayBeGuess: Bool { begun.load(ordering: .acquiring) && !right.load(ordering: .acquiring) }
}
