public import Base

/// The times an `Auth` goes by: the machine's, or a test's.
///
/// How long an ID token is still good is measured with `monotonic` alone, so that a wrong wall clock does not matter;
/// `wall` bridges a restart of the application.
public struct AuthClock: Sendable {
    let wall: Clock
    let monotonic: @Sendable () -> Instant
    let sleep: @Sendable (Duration) async throws -> Void

    /// `monotonic` must never go back and should count the time the machine sleeps; `sleep` throws when its task is
    /// cancelled.
    public init(
        wall: Clock, monotonic: @escaping @Sendable () -> Instant,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.wall = wall
        self.monotonic = monotonic
        self.sleep = sleep
    }

    /// CLOCK_REALTIME and CLOCK_BOOTTIME.
    public static let system = AuthClock(wall: .system) {
        .nowWithSleep
    } sleep: {
        try await Task.sleep(for: $0)
    }

    func moment() -> Moment { Moment(monotonic: monotonic(), wall: wall.now()) }
}

/// One point in time on both clocks.
struct Moment: Sendable, Equatable {
    let monotonic: Instant
    let wall: Timestamp
}
