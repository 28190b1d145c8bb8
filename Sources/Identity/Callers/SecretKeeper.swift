public import Base

/// Keeps a secret for people outside of the store, which has only its hash; posternd uses the file `admin-key`.
///
/// The secret is kept before the store has the key, so that it is not lost, whenever the process ends. It is shown once
/// the store has the key, so that nobody finds a useless secret.
public protocol SecretKeeper: Sendable {
    /// Keeps a secret in a place that nobody looks at; it replaces a secret that is kept there.
    func keep(_ secret: Secret) throws
    /// The secret that is kept and was not shown, because the start that made it ended early.
    func kept() throws -> Secret?
    /// Moves the secret to where people look.
    func show() throws
    /// Forgets the secret: its key never came into the store.
    func discard() throws
}
