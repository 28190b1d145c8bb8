public import Base
import Journal

/// What a node of a cluster knows of its journal.
public struct JournalStatus: Sendable {
    /// Whether the engine answers.
    public internal(set) var isConnected = false
    /// Whether what the store holds is known to be the journal's past.
    public private(set) var isConfirmed = false
    /// Since when it is.
    public private(set) var confirmedSince: Instant?
    /// The newest entry that the store holds.
    public private(set) var position: UInt64 = 0
    /// When the engine was asked last for what the store has reached since: it holds all that was acknowledged anywhere
    /// before. Nil where it was never so.
    public private(set) var endSeenAt: Instant?
    /// Entries that are known to be in the journal and not yet in the store.
    public private(set) var behindCount: UInt64 = 0
    /// The newest entry that the engine was seen to hold, and when it was asked.
    private var seenEnd: (position: UInt64, at: Instant)?
    /// The newest entry that the store is sure to hold after a failure of the machine; nil until that is known.
    public private(set) var syncedPosition: UInt64?
    /// Why the connection was lost last, or not made. Empty while there is one.
    public private(set) var trouble = ""
    public internal(set) var clusterID: [UInt8] = []
    /// When the store was opened.
    private let openedAt = Instant.now
    public internal(set) var clock = ClockAgreement()

    /// The node writes nothing until its clock agrees with the engine's again.
    public var isClockWrong: Bool { clock.isWrong }

    /// How old what the store holds may be: a second at most while the engine answers (`JournalLimits.lookInterval`).
    public func staleness(at now: Instant) -> Duration {
        .nanoseconds(max(0, now.nanoseconds(since: endSeenAt ?? openedAt)))
    }

    mutating func note(_ node: JournalNode) {
        position = node.mark?.position ?? 0
        isConfirmed = node.isServing
        if !isConfirmed { confirmedSince = nil } else if confirmedSince == nil { confirmedSince = .now }
        guard let end = seenEnd else { return }
        behindCount = end.position > position ? end.position - position : 0
        if isConfirmed, behindCount == 0 { endSeenAt = end.at }
        if isConfirmed { trouble = "" }
    }

    /// The engine, asked at `time`, holds entries up to `position`.
    mutating func saw(end position: UInt64, at time: Instant) { seenEnd = (position, time) }

    /// Everything committed is on the disk. `position` is what was committed before, or less.
    mutating func noteSynced() { syncedPosition = position }

    mutating func lost(_ reason: String) {
        isConnected = false
        isConfirmed = false
        confirmedSince = nil
        trouble = reason
    }
}
