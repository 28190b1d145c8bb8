public import Base
import Journal

/// The state of a cluster's journal, as far as this node knows.
public struct JournalStatus: Sendable {
    /// Whether the engine answers. A connection alone does not show that: it has to confirm what the store holds first.
    public internal(set) var isConnected = false
    /// Whether the store's contents are known to be the journal's past.
    public private(set) var isConfirmed = false
    /// Since when the contents are confirmed.
    public private(set) var confirmedSince: Instant?
    /// The newest entry that the store holds.
    public private(set) var position: UInt64 = 0
    /// The time of the last question to the engine whose answer the store has reached since. The store holds everything
    /// that any node acknowledged before this time. Nil if the store never reached an answer.
    ///
    /// By `Instant.nowWithSleep`: the store does not hold what was acknowledged while this machine slept.
    public private(set) var endSeenAt: Instant?
    /// Entries that are known to be in the journal and not yet in the store.
    public private(set) var behindCount: UInt64 = 0
    /// The newest entry that the engine was seen to hold, and when it was asked.
    private var seenEnd: (position: UInt64, at: Instant)?
    /// The newest entry that the store is sure to hold after a failure of the machine; nil until that is known.
    public private(set) var syncedPosition: UInt64?
    /// Why the last connection was lost, or could not be made. Empty while there is a connection.
    public private(set) var trouble = ""
    public internal(set) var clusterID: [UInt8] = []
    /// When the store was opened, by the same clock as `endSeenAt`.
    private let openedAt = Instant.nowWithSleep
    public internal(set) var clock = ClockAgreement()

    /// The node writes nothing until its clock agrees with the engine's again.
    public var isClockWrong: Bool { clock.isWrong }

    /// The node deletes and refuses nothing by its clock until the clock agrees with the engine's again.
    public var isClockAway: Bool { clock.isAway }

    /// How old the store's contents may be: a second at most while the engine answers (`JournalLimits.lookInterval`).
    /// `now`: by the same clock as `endSeenAt`.
    public func staleness(at now: Instant) -> Duration {
        .nanoseconds(max(0, now.nanoseconds(since: endSeenAt ?? openedAt)))
    }

    mutating func note(_ node: JournalNode) {
        // The protocol learns of the entries that were applied only after the last of them.
        position = max(position, node.mark?.position ?? 0)
        isConfirmed = node.isServing
        if isConfirmed { (isConnected, trouble) = (true, "") }
        if !isConfirmed { confirmedSince = nil } else if confirmedSince == nil { confirmedSince = .now }
        countBehind()
        if let end = seenEnd, isConfirmed, behindCount == 0 { endSeenAt = end.at }
    }

    /// Notes that the store holds the entries up to `mark`, while it takes further ones.
    mutating func reached(_ mark: JournalMark) {
        position = mark.position
        countBehind()
    }

    private mutating func countBehind() {
        guard let end = seenEnd else { return }
        behindCount = end.position > position ? end.position - position : 0
    }

    /// The engine, asked at `time` by the same clock as `endSeenAt`, holds entries up to `position`.
    mutating func saw(end position: UInt64, at time: Instant) { seenEnd = (position, time) }

    /// Notes that everything committed is on the disk. `position` is the newest committed entry, or an older one.
    mutating func noteSynced() { syncedPosition = position }

    mutating func lost(_ reason: String) {
        isConnected = false
        isConfirmed = false
        confirmedSince = nil
        trouble = reason
    }
}
