import Base

/// The tokens that a caller asks for.
enum TokenWish {
    /// Tokens that are valid. They may be the present ones.
    case valid
    /// Tokens other than the present ones.
    case replaced
    /// Tokens of a refresh that is sent after the call began: they show what the server knew then.
    case askedFromNow
}

/// A caller that waits for new tokens.
struct RefreshWaiter: Sendable {
    let promise = Promise<Result<TokenSet, AuthError>>()
    /// How many refreshes had been sent when the caller came. Nil: the tokens of any refresh will do.
    let sentBefore: Int?

    /// Whether tokens that are not older than this refresh are new enough for the caller.
    func isServed(by refresh: Int) -> Bool { sentBefore.map { refresh > $0 } ?? true }
}
