import Base

/// A change whose answer was lost. It may have ended the tokens that are held here; the same request under the same key
/// brings those it made.
struct LostChange: Sendable {
    let since: Instant
    let cause: TokenRefreshCause
    let again: @Sendable () async throws(AuthError) -> Answer

    /// The server answers again for an hour; no ID token lives longer.
    static let lifetime = Duration.hours(1)
}
