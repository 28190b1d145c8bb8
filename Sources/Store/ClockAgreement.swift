public import Base

/// Whether a node's clock is near the engine's, which all nodes of a cluster share. Pure: readings come in.
///
/// What a node stamps, refuses or deletes by its age, the others believe. So a node whose clock is further away than
/// `JournalLimits.clockDifferenceMax`, for as long as `clockPatience`, writes nothing until it is right again.
public struct ClockAgreement: Equatable, Sendable {
    /// How far the node's clock is ahead of the engine's, at least; negative where it is behind. Zero: no further than
    /// the time that the engine's answer took.
    public private(set) var difference = Duration.zero
    public private(set) var isWrong = false
    private var awaySince: Instant?

    public init() {}

    /// Takes in what the engine's clock said between two readings of the node's.
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
