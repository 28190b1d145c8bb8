public import Base

/// Counts events in windows of one second: at most twice `perSecondMax` pass in any second.
public struct EventRate: Sendable {
    private let perSecondMax: Int
    private var windowStart = Instant(nanoseconds: 0)
    private var count = 0

    public init(perSecondMax: Int) { self.perSecondMax = perSecondMax }

    /// Counts an event. Returns false when the event is above the rate.
    public mutating func note(at now: Instant) -> Bool {
        if count == 0 || now.nanoseconds(since: windowStart) >= 1_000_000_000 {
            windowStart = now
            count = 0
        }
        count += 1
        return count <= perSecondMax
    }
}
