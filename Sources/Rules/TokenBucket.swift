public import Base

/// So many of something a second, and as many as fit the bucket at once. Pure: time comes in.
///
/// What is spent is charged afterwards, when it is known how much it was: the level may fall below zero, down to one
/// bucket's worth, and has to be made good before anything more is admitted. A clock that is set back refills nothing,
/// one that is set forward fills the bucket once.
public struct TokenBucket: Sendable {
    /// The units that may be spent now.
    public private(set) var level: Double
    private var updatedAt: Timestamp

    /// A full one.
    public init(size: Double, now: Timestamp) {
        self.level = size
        self.updatedAt = now
    }

    public mutating func refill(perSecond rate: Double, size: Double, now: Timestamp) {
        let elapsed = max(0, Double((now - updatedAt).microseconds) / 1_000_000)
        level = min(size, level + elapsed * rate)
        updatedAt = now
    }

    /// When the bucket is full again if nothing more is spent. From then on it says nothing that a new one does not.
    public func isFull(at rate: Double, size: Double) -> Timestamp {
        guard level < size else { return updatedAt }
        let seconds = rate > 0 ? (size - level) / rate : .infinity
        return updatedAt + .seconds(Int64(min(Self.memoryMax, seconds.rounded(.up))))
    }

    private static let memoryMax = 86_400.0

    public mutating func spend(_ amount: Double, size: Double) { level = max(-size, level - amount) }

    /// How long until there is more than `floor`; nil when there is.
    public func wait(until floor: Double, perSecond rate: Double) -> Duration? {
        guard level <= floor else { return nil }
        return .microseconds(Int64(min(3_600_000_000, max(1, (floor - level + 1) / rate * 1_000_000))))
    }
}
