import Base
public import Messages

/// The result of a sign-in or a change: the user, and tokens where a session began or changed.
public struct SignedIn: Sendable {
    public let user: User
    public let tokens: TokenPair
    /// Whether this sign-in created the account.
    public let isNewUser: Bool
    /// Whether the session has shown a second factor.
    public let hasShownFactor: Bool
    /// When the sign-in or change was made, as the store has it. The answer may be made much later.
    let madeAt: Timestamp

    init(user: User, session: StoredSession, tokens: TokenPair, isNewUser: Bool) {
        self.user = user
        self.tokens = tokens
        self.isNewUser = isNewUser
        self.hasShownFactor = !session.secondFactor.isEmpty
        self.madeAt = Timestamp(microseconds: max(session.createdAtMicros, session.lastUsedAtMicros))
    }
}
