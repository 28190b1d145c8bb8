import Base

/// Whether the wall clock can be believed: it and the monotonic clock have agreed for an hour. Pure.
///
/// What deletes accounts by their age asks here first. A clock that jumps, by a mistake of its setter or after a start
/// with a wrong one, has an hour to be put right before anything is deleted by it.
struct SteadyTime: Sendable {
    private var since: (wall: Timestamp, monotonic: Instant)?

    static let trustedAfter = Duration.hours(1)
    /// More than clocks drift apart in years of slow correction between two starts.
    static let differenceMax = Duration.minutes(5)

    /// Notes both clocks; true once they have gone alike for long enough. Called at least every few minutes.
    mutating func isSteady(wall: Timestamp, monotonic: Instant) -> Bool {
        guard let since else {
            self.since = (wall, monotonic)
            return false
        }
        let elapsed = Duration.nanoseconds(monotonic.nanoseconds(since: since.monotonic))
        let difference = (wall - since.wall) - elapsed
        guard difference <= Self.differenceMax, difference >= .zero - Self.differenceMax else {
            self.since = (wall, monotonic)
            return false
        }
        return elapsed >= Self.trustedAfter
    }
}
