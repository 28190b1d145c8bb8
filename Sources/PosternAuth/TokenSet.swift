import Base
import JSON
import Messages

/// The tokens of a user, and the ID token's remaining life by our own monotonic clock.
///
/// Only the token's lifetime counts, which is the difference of two times of the server, from the moment the token was
/// requested. A wrong wall clock, here or at the server, changes nothing.
struct TokenSet: Sendable, Equatable {
    let idToken: Text
    let refreshToken: Text
    /// The token's time of expiry minus its time of issue.
    let lifetime: Duration
    /// When the token was asked for: never later than it was issued.
    let asked: Moment

    /// A token whose remaining life is not above this is renewed before it is handed out.
    static let marginMax = Duration.minutes(5)

    init(idToken: Text, refreshToken: Text, lifetime: Duration, asked: Moment) {
        self.idToken = idToken
        self.refreshToken = refreshToken
        self.lifetime = lifetime
        self.asked = asked
    }

    /// Throws malformedJWT when the ID token cannot be read. An answer without a refresh token leaves the one that the
    /// client has, `present`.
    init(_ pair: TokenPair, keeping present: Text = .empty, asked: Moment) throws(AuthError) {
        let payload = try IDTokenPayload(pair.idToken)
        self.init(
            idToken: pair.idToken, refreshToken: pair.refreshToken.isEmpty ? present : pair.refreshToken,
            lifetime: payload.expiresAt - payload.issuedAt, asked: asked)
    }

    /// Restores tokens after a restart. The former monotonic clock is gone, so the wall clock says how long ago the
    /// token was requested. If the wall clock went back meanwhile, the token counts as used up.
    init(idToken: Text, refreshToken: Text, lifetime: Duration, askedAt: Timestamp, now: Moment) {
        let passed = now.wall - askedAt
        let age = passed >= .zero ? passed : lifetime
        self.init(
            idToken: idToken, refreshToken: refreshToken, lifetime: lifetime,
            asked: Moment(monotonic: now.monotonic.advanced(by: .zero - age), wall: askedAt))
    }

    /// The remaining life of the ID token. Negative: the token has expired.
    func remaining(at now: Instant) -> Duration {
        lifetime - .nanoseconds(now.nanoseconds(since: asked.monotonic))
    }

    /// Five minutes, or half of the lifetime for tokens that live less than ten minutes.
    var margin: Duration { min(Self.marginMax, lifetime / 2) }

    func isValid(at now: Instant) -> Bool { remaining(at: now) > margin }
}
