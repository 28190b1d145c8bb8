import Base

/// Whether a node of a cluster knows enough of the journal to serve. Pure: the time is passed in.
///
/// While the engine is away, or has connections and answers nothing, a node serves its own state for a while: an engine
/// that fails over is back within a minute. If the engine shows entries, a node that does not get them into its store
/// sends its clients to other nodes soon.
struct JournalHealth {
    private let startedAt: Instant
    private let limits: JournalLimits

    init(startedAt: Instant, limits: JournalLimits) { (self.startedAt, self.limits) = (startedAt, limits) }

    /// An operator may want a node to serve for as long as the engine is away. `isConfirmed`, `behindCount` and
    /// `endSeenAt`: as in `JournalStatus`; all times are by the same clock.
    func isBehind(isConfirmed: Bool, behindCount: UInt64, endSeenAt: Instant?, now: Instant) -> Bool {
        // A connection does not show that the engine answers: an append may be waiting for the standby. Entries that
        // were seen on a connection that is not confirmed may still be lost. In both cases all nodes wait, and no other
        // node could serve the clients better.
        let isOvertaken = isConfirmed && behindCount > 0
        if !isOvertaken, limits.whenBehind == .serve, endSeenAt != nil { return false }
        let patience = isOvertaken ? limits.behindMax : limits.staleAfter
        return now >= (endSeenAt ?? startedAt).advanced(by: patience)
    }
}
