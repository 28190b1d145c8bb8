import Base
import Synchronization

extension Store {
    /// This node's place in its cluster's journal; nil outside of a cluster. Every acknowledged write of this store is
    /// at that place or before it.
    public var journalPosition: JournalPosition? {
        guard isInCluster else { return nil }
        let status = environment.journalStatus.withLock { $0 }
        return JournalPosition(clusterID: status.clusterID, number: status.position)
    }

    /// Whether the engine has answered without a break for `duration`.
    public func hasReachedJournal(for duration: Duration) -> Bool {
        guard let since = journalStatus?.confirmedSince else { return false }
        return Instant.now >= since.advanced(by: duration)
    }

    /// How long this node may have missed the writes of other nodes. Zero outside of a cluster.
    public var staleness: Duration {
        guard isInCluster else { return .zero }
        return environment.journalStatus.withLock { $0.staleness(at: .nowWithSleep) }
    }

    /// Whether this node's clock is too far from its cluster's, as far as is known. False outside of a cluster.
    public var isClockAway: Bool { journalStatus?.isClockAway ?? false }

    /// How far this node's clock is ahead of its cluster's, if that is too far; negative if it is behind. Otherwise
    /// zero.
    public var clockDifference: Duration {
        guard let status = journalStatus, status.isClockAway else { return .zero }
        return status.clock.difference
    }
}
