import Store

/// The rows of other servers' guesses that are still to be counted. Pure. Each row is counted once.
///
/// A start reads all rows that there are. A row that is announced later is read by its key; one that was in the start's
/// snapshot is not read again.
struct GuessNews {
    private struct Row {
        let key: GuessRowKey
        let snapshot: Snapshot
    }

    /// Nil until `started`; `take` returns nothing until then.
    private var countedUpTo: Snapshot?
    private var waiting: [Row] = []
    private let ownID: UInt64
    private let countMax: Int

    /// `ownID`: this server, whose rows are counted already.
    init(ownID: UInt64, countMax: Int) { (self.ownID, self.countMax) = (ownID, countMax) }

    /// Queues rows that were announced. Returns how many there was no room for.
    mutating func came(_ keys: [GuessRowKey], in snapshot: Snapshot) -> Int {
        if let countedUpTo, snapshot <= countedUpTo { return 0 }
        let others = keys.filter { $0.serverID != ownID }
        let room = max(0, countMax - waiting.count)
        waiting += others.prefix(room).map { Row(key: $0, snapshot: snapshot) }
        return max(0, others.count - room)
    }

    /// Notes that all rows of this snapshot were counted.
    mutating func started(in snapshot: Snapshot) {
        countedUpTo = snapshot
        waiting.removeAll { $0.snapshot <= snapshot }
    }

    /// The rows that are to be counted now. A caller that cannot read them gives them back.
    mutating func take() -> [GuessRowKey] {
        guard countedUpTo != nil else { return [] }
        defer { waiting = [] }
        return waiting.map(\.key)
    }

    /// Puts taken rows back for the next `take`. Returns how many there was no room for.
    mutating func giveBack(_ keys: [GuessRowKey]) -> Int {
        guard let countedUpTo else { return keys.count }
        let room = max(0, countMax - waiting.count)
        waiting += keys.prefix(room).map { Row(key: $0, snapshot: countedUpTo) }
        return max(0, keys.count - room)
    }
}
