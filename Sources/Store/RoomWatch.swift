import Base

/// Tells whether the store ran out of room since the watch began: for a long read. Its snapshot keeps the pages of
/// everything that is deleted meanwhile, so that deleting makes no room. Any thread.
public struct RoomWatch: Sendable {
    private let counters: WriteCounters
    /// The number of refused writes at the beginning; nil if there was no room then.
    private let refusedBefore: UInt64?

    init(_ counters: WriteCounters) {
        self.counters = counters
        self.refusedBefore = counters.shortages.value == 0 ? counters.refusals.value : nil
    }

    /// Whether a write was refused for lack of room, and there was room when the watch began.
    public var hasRunOut: Bool { refusedBefore.map { counters.refusals.value > $0 } ?? false }
}

extension Store {
    public func watchRoom() -> RoomWatch { RoomWatch(counters) }
}
