import Base

/// The rules for repeating a call that failed with UNAVAILABLE: those of gRPC's proposal A6, with its random delays and
/// its throttle.
///
/// ```swift
/// var options = ChannelOptions()
/// options.retry.attemptsMax = 2
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.retry.delayMax)
/// ```
public struct RetryPolicy: Sendable {
    /// The most attempts, the first one included. 1: a call that the server may have executed is not repeated.
    ///
    /// A call that the server says it did not process, for example because it leaves or has too many streams, is sent
    /// again whatever this says, at least once and in all at most as often as this allows: once at once (A6,
    /// "Transparent Retries"), and then after the delays below. A stream is sent again at once each time.
    public var attemptsMax = 4
    /// The longest delay before the second attempt. The actual delay is a random part of it.
    public var firstDelayMax = Duration.milliseconds(100)
    /// The longest delay before any attempt.
    public var delayMax = Duration.seconds(1)
    /// The factor by which the longest delay grows with each attempt.
    public var multiplier = 2.0

    /// Creates the defaults.
    public init() {}

    /// How often the same call may be sent while the server says each time that it did not process it.
    var sendingsMax: Int { max(2, attemptsMax) }

    /// The part of `sendingsMax` for one attempt of a unary call. The first attempt may be sent twice, without a delay:
    /// the server was about to leave, or its limit was not known yet. An attempt after that follows a delay.
    func sendings(inAttempt attempt: Int) -> Int { attempt == 1 ? 2 : 1 }

    /// The wait after attempt number `attempt` (from 1) failed: a random time up to a bound that grows by `multiplier`.
    func delay(afterAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        var bound = firstDelayMax
        for _ in 1..<max(attempt, 1) { bound = min(bound * multiplier, delayMax) }
        return bound * Double.random(in: 0...1, using: &generator)
    }

    /// True for UNAVAILABLE, unless a retry at once would change nothing: connecting has a back-off of its own.
    func isWorthRetrying(_ failure: Failure) -> Bool {
        failure.code == .unavailable && !failure.is(.connectionFailed)
            && !failure.is(.channelClosed)
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

/// The pauses between attempts to connect to an address (gRPC's connection-backoff.md). While no address of the channel
/// can be tried, calls fail at once.
///
/// The defaults are 1 s, then 1.6 times longer after each failure, up to 2 minutes, each ± 20 %.
///
/// ```swift
/// var options = ChannelOptions()
/// options.reconnect.delayMax = .seconds(5)
/// let channel = try Channel(address: "127.0.0.1:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.reconnect.firstDelay)
/// ```
public struct ReconnectBackoff: Sendable {
    /// The pause after the first failure.
    public var firstDelay = Duration.seconds(1)
    /// The longest pause.
    public var delayMax = Duration.seconds(120)
    /// The factor by which the pause grows with each failure.
    public var multiplier = 1.6
    /// The random part of a pause: 0.2 makes it up to 20 % shorter or longer.
    public var jitter = 0.2
    private var failureCount = 0

    /// Creates the defaults.
    public init() {}

    mutating func succeeded() { failureCount = 0 }

    mutating func failed(using generator: inout some RandomNumberGenerator) -> Duration {
        var delay = firstDelay
        for _ in 0..<failureCount where delay < delayMax { delay = min(delay * multiplier, delayMax) }
        failureCount += 1
        return randomised(delay, using: &generator)
    }

    /// The pause after one failure, whatever failed before.
    func first(using generator: inout some RandomNumberGenerator) -> Duration {
        randomised(firstDelay, using: &generator)
    }

    private func randomised(_ delay: Duration, using generator: inout some RandomNumberGenerator) -> Duration {
        delay * Double.random(in: (1 - jitter)...(1 + jitter), using: &generator)
    }
}
