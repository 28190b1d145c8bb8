import Journal

/// An engine like PostgreSQL with a synchronous standby, as far as the protocol can tell: one primary, rows that are
/// seen when the standby has them or when the wait for it was broken off, a lock for turns, and clients whose
/// connections break.
///
/// An old primary that still answers after a fail-over is not modelled: it is the engine's task to prevent that.
struct ModelEngine {
    enum Question {
        case read(from: Int)
        case append(over: JournalMark, Row, checksState: Bool)
        /// Locks the table against the appends of others.
        case beginTurn
        /// Commits the row that was inserted in the turn.
        case commit
        case endTurn
    }

    enum Answer {
        case rows([Row])
        case appended(JournalMark)
        case outrun
        case turn(isGiven: Bool)
        /// The row was inserted in a turn. It is not in the journal before the commit.
        case inserted(JournalMark)
        case turnEnded
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
    /// The connection that has the turn.
    private(set) var turn: Int?
    /// The row that was inserted in the turn.
    private var inserted: Row?
    /// Appends and requests for a turn that wait for the table's lock, in their order.
    private var line: [(session: Int, question: Question)] = []
    /// The connections that the engine ended: nothing that comes from them takes effect.
    private var ended: Set<Int> = []
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

    /// Returns the answers that come at once, also those to questions that waited for this one.
    mutating func take(_ question: Question, session: Int) -> [(session: Int, Answer)] {
        guard !ended.contains(session) else { return [] }
        switch question {
        case .read(let from):
            let first = max(from, oldest)
            return [(session, .rows(first < rows.count ? Array(rows[first...]) : []))]
        case .append(let mark, let row, let checksState) where turn == session:
            guard row.position == rows.count, !checksState || isPast(mark) else {
                return [(session, .outrun)] + release(session)
            }
            inserted = row
            return [(session, .inserted(row.head.mark))]
        case .append, .beginTurn:
            line.append((session, question))
            return advance()
        case .commit:
            guard turn == session, let row = inserted else { return [] }
            pending = (row, session)
            inserted = nil
            return []
        case .endTurn: return [(session, .turnEnded)] + release(session)
        }
    }

    /// Takes what waits for the table's lock, as far as it is free.
    private mutating func advance() -> [(session: Int, Answer)] {
        var answers: [(session: Int, Answer)] = []
        while turn == nil, let (session, question) = line.first {
            if case .append(let mark, let row, let checksState) = question {
                let answer = append(row, over: mark, checksState, session)
                if let answer { answers.append((session, answer)) }
            } else {
                // The lock conflicts with that of the append that waits for the standby.
                guard pending == nil else { return answers }
                turn = session
                answers.append((session, .turn(isGiven: true)))
            }
            line.removeFirst()
        }
        return answers
    }

    /// Nil if the answer comes later.
    private mutating func append(
        _ row: Row, over mark: JournalMark, _ checksState: Bool, _ session: Int
    ) -> Answer? {
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

    /// Ends the turn of a connection, if it has one.
    private mutating func release(_ session: Int) -> [(session: Int, Answer)] {
        if turn == session { (turn, inserted) = (nil, nil) }
        return advance()
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
        return [(session, .appended(row.head.mark))] + outrunQueued() + release(session)
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
        return (session, outrunQueued() + release(session))
    }

    /// Ends a connection that has the turn and keeps silent.
    mutating func endSilentTurn() -> (session: Int, told: [(session: Int, Answer)])? {
        guard let session = turn, pending == nil else { return nil }
        ended.insert(session)
        return (session, release(session))
    }

    /// The first request for a turn has waited too long.
    mutating func refuseTurn() -> [(session: Int, Answer)] {
        let waiting = line.firstIndex { waiting in
            if case .beginTurn = waiting.question { true } else { false }
        }
        guard let waiting else { return [] }
        return [(line.remove(at: waiting).session, .turn(isGiven: false))] + advance()
    }

    /// The primary starts again with what it had written.
    mutating func restart(keepsPending: Bool) {
        if keepsPending, let row = pending?.row { show(row) }
        dropStatements()
    }

    /// Forgets all statements that were not committed.
    private mutating func dropStatements() {
        if let turn { ended.insert(turn) }
        (queued, line, pending, turn, inserted) = ([], [], nil, nil, nil)
    }

    /// The standby takes over, without what it does not have. Returns the rows that are gone.
    mutating func failOver(losing count: Int) -> (rows: [Row], unanswered: [Int]) {
        let waiting = queued.map(\.session) + line.map(\.session)
        let unanswered = waiting + [pending?.session, turn].compactMap { $0 }
        dropStatements()
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
