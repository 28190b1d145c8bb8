import Base

/// Whether a node of a cluster knows enough of the journal to serve. Pure: the time is passed in.
///
/// While the engine is away, a node serves its own state for a while: an engine that fails over is back within a
/// minute. If the engine answers, a node that is behind sends its clients to other nodes at once.
struct JournalHealth {
    private let startedAt: Instant
    private let limits: JournalLimits

    init(startedAt: Instant, limits: JournalLimits) { (self.startedAt, self.limits) = (startedAt, limits) }

    /// An operator may want a node to serve for as long as the engine is away. `endSeenAt`: as in `JournalStatus`.
    func isBehind(isConnected: Bool, endSeenAt: Instant?, now: Instant) -> Bool {
        if !isConnected, limits.whenBehind == .serve, endSeenAt != nil { return false }
        let patience = isConnected ? limits.behindMax : limits.staleAfter
        return now >= (endSeenAt ?? startedAt).advanced(by: patience)
    }
}
