import Base

/// Lets one line of a kind into the log each second, so that peers cannot fill the log. A value.
struct LogThrottle: Sendable {
    private static let interval = Duration.seconds(1)
    private var lastAt: Instant?

    /// Whether a line may be written now. If so, the next one has to wait for a second.
    mutating func admit(at now: Instant) -> Bool {
        if let lastAt, now < lastAt.advanced(by: Self.interval) { return false }
        lastAt = now
        return true
    }
}
