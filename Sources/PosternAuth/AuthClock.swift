public import Base

/// The clocks of an `Auth`: the machine's, or a test's.
///
/// The remaining life of an ID token is measured with `monotonic` alone, so that a wrong wall clock does no harm.
/// `wall` bridges a restart of the application.
///
/// ```swift
/// var configuration = Auth.Configuration(channel: channel)
/// configuration.clock = AuthClock(
///     wall: .system, monotonic: { .nowWithSleep }, sleep: { try await Task.sleep(for: $0) })
/// let auth = try Auth(configuration: configuration)
/// print(auth.currentUser?.uid ?? "nobody is signed in")
/// ```
public struct AuthClock: Sendable {
    let wall: Clock
    let monotonic: @Sendable () -> Instant
    let sleep: @Sendable (Duration) async throws -> Void

    /// Creates the clocks of a test.
    ///
    /// `monotonic` must never go back and should count the time that the machine sleeps. `sleep` must throw when its
    /// task is cancelled.
    public init(
        wall: Clock, monotonic: @escaping @Sendable () -> Instant,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.wall = wall
        self.monotonic = monotonic
        self.sleep = sleep
    }

    /// The machine's clocks: CLOCK_REALTIME and CLOCK_BOOTTIME.
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
