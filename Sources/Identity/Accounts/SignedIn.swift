public import Messages

/// What a sign-in or a change hands back: the user, and tokens where a session began or changed.
public struct SignedIn: Sendable {
    public let user: User
    public let tokens: TokenPair
    /// Whether this sign-in created the account.
    public var isNewUser = false
}
