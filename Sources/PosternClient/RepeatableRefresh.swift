import Base
import Messages

extension Message {
    /// The message as all attempts of a call send it: a refresh without an `attempt_id` gets one.
    ///
    /// The server takes a refresh with the same id for the same refresh. Without an id, it takes a repeat that comes
    /// more than ten seconds after the refresh for a thief's, and ends the session (REVOKED_BY_REUSE).
    var repeatable: Self {
        guard var refresh = self as? TokensRefreshRequest, refresh.attemptID.isEmpty, !refresh.refreshToken.isEmpty
        else { return self }
        var generator = SystemRandomNumberGenerator()
        refresh.attemptID = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
        return refresh as? Self ?? self
    }
}
