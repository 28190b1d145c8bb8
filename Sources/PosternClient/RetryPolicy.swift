import Base

/// When a call that may be repeated is sent again: gRPC's proposal A6, with its jitter and throttle.
public struct RetryPolicy: Sendable {
    /// The first one counts. 1: never again.
    public var attemptsMax = 4
    public var firstDelayMax = Duration.milliseconds(100)
    public var delayMax = Duration.seconds(1)
    public var multiplier = 2.0

    public init() {}

    /// How long to wait after attempt number `attempt` (from 1) failed: anything up to a bound that doubles.
    func delay(afterAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        var bound = firstDelayMax
        for _ in 1..<max(attempt, 1) { bound = min(bound * multiplier, delayMax) }
        return bound * Double.random(in: 0...1, using: &generator)
    }

    /// UNAVAILABLE, unless nothing would change by asking again at once: connecting has a back-off of its own.
    func isWorthRetrying(_ failure: Failure) -> Bool {
        failure.code == .unavailable && failure.reason != ClientReason.connectionFailed
            && failure.reason != ClientReason.channelClosed
    }
}

/// Stops retries while most calls fail, so that they do not bury a server that struggles (A6, "Throttling").
struct RetryBudget: Sendable {
    private static let tokensMax = 10.0
    private var tokens = tokensMax

    mutating func succeeded() { tokens = min(tokens + 0.1, Self.tokensMax) }

    /// Takes a token; false when half of them are gone.
    mutating func failed() -> Bool {
        tokens = max(tokens - 1, 0)
        return tokens > Self.tokensMax / 2
    }
}

/// How long to leave a server alone that cannot be reached: 1 s, then 1.6 times longer each time, up to 2 minutes,
/// ± 20 % (gRPC's connection-backoff.md). Until then calls fail at once.
public struct ReconnectBackoff: Sendable {
    public var firstDelay = Duration.seconds(1)
    public var delayMax = Duration.seconds(120)
    public var multiplier = 1.6
    public var jitter = 0.2
    private var failureCount = 0

    public init() {}

    mutating func succeeded() { failureCount = 0 }

    mutating func failed(using generator: inout some RandomNumberGenerator) -> Duration {
        var delay = firstDelay
        for _ in 0..<failureCount where delay < delayMax { delay = min(delay * multiplier, delayMax) }
        failureCount += 1
        return delay * Double.random(in: (1 - jitter)...(1 + jitter), using: &generator)
    }
}
