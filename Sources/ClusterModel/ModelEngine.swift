import Journal

/// An engine like PostgreSQL with a synchronous standby, as far as the protocol can tell: one primary, rows that are
/// seen when the standby has them or when the wait for it was broken off, and clients whose connections break.
///
/// An old primary that still answers after a fail-over is not modelled: it is the engine's task to prevent that.
struct ModelEngine {
    enum Question {
        case read(from: Int)
        case append(over: JournalMark, Row, checksState: Bool)
    }

    enum Answer {
        case rows([Row])
        case appended(JournalMark)
        case outrun
    }

    /// The rows from 0 on. Those below `oldest` are trimmed, and are kept only for the checks.
    private(set) var rows = [Row.first]
    private(set) var oldest = 0
    /// The state after each row.
    private(set) var states = [ModelState()]
    /// The number of rows that are on the standby, which are safe.
    private(set) var safeCount = 1
    /// The row that is written, waits for the standby, and is not seen.
    private(set) var pending: (row: Row, session: Int)?
    /// Appends that wait for the place that the pending row has.
    private var queued: [(session: Int, Row)] = []
    /// Counts fail-overs that lost rows that had been seen.
    private(set) var losses = 0
    private(set) var snapshots: [(mark: JournalMark, state: ModelState)] = [(Row.first.head.mark, ModelState())]
    /// The synced position of each node that trimming waits for.
    var registered: [Int: Int] = [:]

    var end: Int { rows.count - 1 }

    func isPast(_ mark: JournalMark) -> Bool {
        let position = Int(mark.position)
        return position < rows.count && rows[position].head.mark == mark
    }

    // MARK: Questions

    /// Nil if the answer comes later.
    mutating func take(_ question: Question, session: Int) -> Answer? {
        switch question {
        case .read(let from):
            let first = max(from, oldest)
            return .rows(first < rows.count ? Array(rows[first...]) : [])
        case .append(let mark, let row, let checksState):
            if let pending {
                // The primary key makes the append wait; over any other state there is nothing to insert.
                guard pending.row.position == row.position else { return .outrun }
                queued.append((session, row))
                return nil
            }
            guard row.position == rows.count, !checksState || isPast(mark) else { return .outrun }
            pending = (row, session)
            return nil
        }
    }

    /// The standby takes one more row. Returns the answers to those that waited for it.
    mutating func replicate() -> [(session: Int, Answer)] {
        if safeCount < rows.count {
            safeCount += 1
            return []
        }
        guard let (row, session) = pending else { return [] }
        show(row)
        safeCount = rows.count
        return [(session, .appended(row.head.mark))] + outrunQueued()
    }

    private mutating func show(_ row: Row) {
        pending = nil
        rows.append(row)
        var state = states[states.count - 1]
        for put in row.puts { state.apply(put) }
        states.append(state)
    }

    private mutating func outrunQueued() -> [(session: Int, Answer)] {
        defer { queued = [] }
        return queued.map { ($0.session, .outrun) }
    }

    // MARK: Faults

    /// The wait for the standby is broken off: the row is seen, and its client learns that nobody knows its outcome.
    mutating func breakOffWait() -> (lost: Int, told: [(session: Int, Answer)])? {
        guard let (row, session) = pending else { return nil }
        show(row)
        return (session, outrunQueued())
    }

    /// The primary starts again with what it had written.
    mutating func restart(keepsPending: Bool) {
        queued = []
        if keepsPending, let row = pending?.row { show(row) }
        pending = nil
    }

    /// The standby takes over, without what it does not have. Returns the rows that are gone.
    mutating func failOver(losing count: Int) -> (rows: [Row], unanswered: [Int]) {
        let unanswered = queued.map(\.session) + (pending.map { [$0.session] } ?? [])
        queued = []
        pending = nil
        let kept = max(oldest + 1, safeCount - count)
        let lost = Array(rows[kept...])
        if !lost.isEmpty { losses += 1 }
        rows.removeSubrange(kept...)
        states.removeSubrange(kept...)
        safeCount = rows.count
        return (lost, unanswered)
    }

    // MARK: Snapshots

    mutating func addSnapshot(_ mark: JournalMark, _ state: ModelState) { snapshots.append((mark, state)) }

    /// The number of rows that are always kept: a snapshot must not be lost together with the rows that it replaces.
    static let keptCount = 8

    /// Drops rows that every registered node and a snapshot have.
    mutating func trim() {
        let limit = min(registered.values.min() ?? end, safeCount - Self.keptCount)
        let snapshot = snapshots.last { isPast($0.mark) && $0.mark.position <= max(0, limit) }
        oldest = max(oldest, snapshot.map { Int($0.mark.position) } ?? 0)
    }

    /// The newest snapshot from which the journal goes on.
    func newestSnapshot() -> (mark: JournalMark, state: ModelState)? {
        snapshots.last { isPast($0.mark) && Int($0.mark.position) >= oldest }
    }
}
