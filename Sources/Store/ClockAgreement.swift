public import Base

/// Whether a node's clock is near the engine's, which all nodes of a cluster share. It is pure: the caller passes the
/// readings.
///
/// A node stamps, refuses and deletes records by their age, and the other nodes rely on that. So if a node's clock is
/// further away than `JournalLimits.clockDifferenceMax` for `clockPatience`, it writes nothing until it is right again.
public struct ClockAgreement: Equatable, Sendable {
    /// How far the node's clock is ahead of the engine's, at least; negative if it is behind. Zero means that it is no
    /// further away than the time that the engine's answer took.
    public private(set) var difference = Duration.zero
    public private(set) var isWrong = false
    private var awaySince: Instant?

    public init() {}

    /// Whether the newest reading was too far away. Unlike `isWrong`, this knows no patience: it is for decisions by
    /// the time that nobody could take back, and that can wait or be made by another node.
    public var isAway: Bool { awaySince != nil }

    /// Takes in a reading of the engine's clock, between two readings of the node's clock.
    public mutating func note(
        engine: Timestamp, before: Timestamp, after: Timestamp, at now: Instant, limits: JournalLimits
    ) {
        difference = before > engine ? before - engine : engine > after ? after - engine : .zero
        let largest = limits.clockDifferenceMax
        guard difference > largest || difference < .zero - largest else {
            (awaySince, isWrong) = (nil, false)
            return
        }
        let since = awaySince ?? now
        awaySince = since
        if now >= since.advanced(by: limits.clockPatience) { isWrong = true }
    }
}
