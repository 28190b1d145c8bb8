import Base

/// A change whose answer was lost. The change may have ended the tokens that are held here. The same request under the
/// same key returns the tokens that the change made.
struct LostChange: Sendable {
    let since: Instant
    let cause: TokenRefreshCause
    let again: @Sendable () async throws(AuthError) -> Answer

    /// How long the server repeats the answer: an hour. No ID token lives longer.
    static let lifetime = Duration.hours(1)
}
