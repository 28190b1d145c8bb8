public import Base

/// The options of a `TokenVerifier`. The defaults suit a service that would rather refuse a good token than accept a
/// bad one.
///
/// ```swift
/// var options = VerifierOptions()
/// options.tenants = .one("acme")
/// options.whenStale = .askServer
/// let verifier = try await TokenVerifier(channel: channel, options: options)
/// print(verifier.staleness)
/// ```
public struct VerifierOptions: Sendable {
    /// The treatment of a good token while the verifier is stale: revocations may have been missed for longer than
    /// `staleAfter`.
    public enum StalePolicy: Sendable {
        /// Refuses the token with VERIFIER_STALE until the feed is back (fail closed).
        case refuse
        /// Accepts the token, even if it was revoked meanwhile (fail open).
        case accept
        /// `verify` asks the server, one call per token. `verifyNow` refuses.
        case askServer
    }

    /// The tenants whose tokens are accepted.
    public enum Tenants: Sendable, Equatable {
        /// One tenant. Empty: the credential's tenant if the credential is bound to one, and else the default pool.
        case one(Text)
        /// Every tenant in the credential's scope.
        case any
    }

    /// The kinds of tokens. Each kind has keys and an issuer of its own.
    public enum TokenKind: Sendable, Equatable {
        /// The tokens of a signed-in user, which live for an hour.
        case idToken
        /// The cookies of a browser session, which live for up to two weeks.
        case sessionCookie
    }

    /// The tenants whose tokens are accepted. By default the credential's tenant if the credential is bound to one, and
    /// else the default pool.
    public var tenants = Tenants.one(.empty)
    /// The kind of tokens that are accepted.
    public var tokenKind = TokenKind.idToken
    /// The treatment of good tokens while the verifier is stale.
    public var whenStale = StalePolicy.refuse
    /// The verifier is stale once it may have missed revocations for so long: the feed is silent, or tells a time that
    /// is so long ago.
    public var staleAfter = Duration.seconds(30)
    /// How often the server says that nothing happened: 1 to 300 s, in whole seconds.
    public var heartbeat = Duration.seconds(10)
    /// How often the keys are fetched again, to learn of keys that were retired early.
    public var keyRefreshInterval = Duration.seconds(300)
    /// The shortest time between two fetches of the keys for tokens of unknown keys.
    public var keyRefreshFloor = Duration.seconds(10)

    /// Creates the defaults.
    public init() {}
}
