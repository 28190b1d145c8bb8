public import Base

/// A limit of units per second, with as many at once as fit the bucket. Pure: the time is passed in.
///
/// An amount is charged after it was spent, when it is known: the level may fall below zero, by one bucket's size at
/// most, and has to rise above zero before anything more is admitted. A clock that is set back refills nothing, one
/// that is set forward fills the bucket once.
public struct TokenBucket: Sendable {
    /// The units that may be spent now.
    public private(set) var level: Double
    private var updatedAt: Timestamp

    /// A full bucket.
    public init(size: Double, now: Timestamp) {
        self.level = size
        self.updatedAt = now
    }

    public mutating func refill(perSecond rate: Double, size: Double, now: Timestamp) {
        let elapsed = max(0, Double((now - updatedAt).microseconds) / 1_000_000)
        level = min(size, level + elapsed * rate)
        updatedAt = now
    }

    /// The time from which the bucket is full again if nothing more is spent, in a day at the latest. From then on it
    /// equals a new bucket.
    public func fullAgain(perSecond rate: Double, size: Double) -> Timestamp {
        guard level < size else { return updatedAt }
        let seconds = rate > 0 ? (size - level) / rate : .infinity
        return updatedAt + .seconds(Int64(min(Self.secondsToFullMax, seconds.rounded(.up))))
    }

    private static let secondsToFullMax = 86_400.0

    /// Lowers the level by `amount`, to `-size` at the lowest.
    public mutating func spend(_ amount: Double, size: Double) { level = max(-size, level - amount) }

    /// How long it takes until the level is above `floor`; nil if it is above already.
    public func wait(until floor: Double, perSecond rate: Double) -> Duration? {
        guard level <= floor else { return nil }
        return .microseconds(Int64(min(3_600_000_000, max(1, (floor - level + 1) / rate * 1_000_000))))
    }
}
