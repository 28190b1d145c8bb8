public import Base

/// How a `TokenVerifier` behaves; the defaults suit a service that would rather refuse than be wrong.
public struct VerifierOptions: Sendable {
    /// What to do with a good token when the feed of revocations was not heard of for `staleAfter`.
    public enum StalePolicy: Sendable {
        /// Fail closed: VERIFIER_STALE, until the feed is back.
        case refuse
        /// Fail open: what was revoked meanwhile is let in until then.
        case accept
        /// `verify` has the server decide, one call per token; `verifyNow` refuses.
        case askServer
    }

    /// Which tokens count.
    public enum Tenants: Sendable, Equatable {
        /// Of this tenant; "" is the default pool.
        case one(Text)
        /// Of every tenant in the credential's scope.
        case any
    }

    public enum TokenKind: Sendable, Equatable { case idToken, sessionCookie }

    public var tenants = Tenants.one(.empty)
    /// ID tokens and session cookies have keys and an issuer of their own: a verifier takes one kind.
    public var tokenKind = TokenKind.idToken
    public var whenStale = StalePolicy.refuse
    public var staleAfter = Duration.seconds(30)
    /// How often the server says that nothing happened: 1 to 300 s, whole seconds.
    public var heartbeat = Duration.seconds(10)
    /// How often the keys are fetched again, so that a key that was retired early is found out.
    public var keyRefreshInterval = Duration.seconds(300)
    /// An unknown key has them fetched at once, though not more often than this.
    public var keyRefreshFloor = Duration.seconds(10)

    public init() {}
}
