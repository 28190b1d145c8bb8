public import Base

/// Keeps a secret for people, outside of the store, which has its hash only: posternd's file `admin-key`.
///
/// The secret is kept before the store has the key, so that no end of the process loses it. It is shown once the store
/// has the key, so that nobody finds a secret that is good for nothing.
public protocol SecretKeeper: Sendable {
    /// Keeps a secret in a place that nobody looks at, instead of one that is kept there.
    func keep(_ secret: Secret) throws
    /// The secret that is kept and was not shown: that of a start which was ended.
    func kept() throws -> Secret?
    /// Moves the secret to where people look.
    func show() throws
    /// Forgets the secret: its key never came into the store.
    func discard() throws
}
