public import Messages

/// The result of a sign-in or a change: the user, and tokens where a session began or changed.
public struct SignedIn: Sendable {
    public let user: User
    public let tokens: TokenPair
    /// Whether this sign-in created the account.
    public var isNewUser = false
}
