import Base
import JSON
import Messages

/// A user's tokens, and how long the ID token is good by our own monotonic clock.
///
/// Only the difference of the server's two times counts, its lifetime, from the moment the token was asked for: a wall
/// clock that is wrong, here or there, changes nothing.
struct TokenSet: Sendable, Equatable {
    let idToken: Text
    let refreshToken: Text
    /// Expiry minus issue, as the token says.
    let lifetime: Duration
    /// When the token was asked for: never later than it was issued.
    let asked: Moment

    /// A token that is good for no longer than this is renewed before it is handed out.
    static let marginMax = Duration.minutes(5)

    init(idToken: Text, refreshToken: Text, lifetime: Duration, asked: Moment) {
        self.idToken = idToken
        self.refreshToken = refreshToken
        self.lifetime = lifetime
        self.asked = asked
    }

    /// Throws malformedJWT when the ID token cannot be read.
    init(_ pair: TokenPair, asked: Moment) throws(AuthError) {
        let payload = try IDTokenPayload(pair.idToken)
        self.init(
            idToken: pair.idToken, refreshToken: pair.refreshToken, lifetime: payload.expiresAt - payload.issuedAt,
            asked: asked)
    }

    /// After a restart: the monotonic clock of before is gone, so the wall clock says how long ago it was. One that
    /// went back in the meantime says nothing, and the token counts as used up.
    init(idToken: Text, refreshToken: Text, lifetime: Duration, askedAt: Timestamp, now: Moment) {
        let passed = now.wall - askedAt
        let age = passed >= .zero ? passed : lifetime
        self.init(
            idToken: idToken, refreshToken: refreshToken, lifetime: lifetime,
            asked: Moment(monotonic: now.monotonic.advanced(by: .zero - age), wall: askedAt))
    }

    /// Negative once it has expired.
    func remaining(at now: Instant) -> Duration {
        lifetime - .nanoseconds(now.nanoseconds(since: asked.monotonic))
    }

    /// Five minutes; less for tokens that are not made for ten.
    var margin: Duration { min(Self.marginMax, lifetime / 2) }

    func isValid(at now: Instant) -> Bool { remaining(at: now) > margin }
}

/// A refresh that was begun: the same 16 bytes again get the same answer again, however often it was lost.
struct RefreshAttempt: Sendable, Equatable {
    static let idByteCount = 16

    let id: [UInt8]
    /// The one token it is for.
    let refreshToken: Text
}
