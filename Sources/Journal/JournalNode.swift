/// The protocol of one node over a shared journal: it says what to do next, given what happened. It is pure: it
/// performs nothing, reads no clock and keeps no data but marks.
///
/// Its shell performs the actions in the order given and reports their outcomes. Only one action at a time has an
/// unknown outcome. A lost connection is the outcome of any action that waited for the engine. The shell keeps the
/// requests, the open transaction of the local store, and the rows that were read.
///
/// Three promises rest on it. A change is acknowledged when its entry is in the journal, once, and nothing is
/// acknowledged that the engine may still lose. A refusal is told only if the state over which it was decided was the
/// journal's end at a moment after the request came. A node whose store is not the journal's past answers nothing at
/// all.
public struct JournalNode: Sendable {
    private enum Link: Equatable {
        case none
        case connecting
        /// The journal may show rows that the engine can still lose.
        case unconfirmed
        case confirmed
    }

    /// The requests that were decided and not answered.
    private enum Batch: Equatable {
        case none
        /// The requests are being decided.
        case running
        /// Decided without a change; the journal's end is asked for.
        case asking
        /// The batch's entry was sent under this name.
        case sent(BatchID)
        /// The entry was sent, and no answer came.
        case unknown(BatchID)
        /// The entry was sent, no answer came, and its row was seen. The row may still be lost.
        case seen(BatchID, JournalMark)
        /// The entry is in the journal; the store commits.
        case committing
    }

    private enum Question { case none, rows, append, turn, endOfTurn }
    private enum Work { case none, joining, running, storing }

    private var link = Link.none
    private var batch = Batch.none
    /// The question that the engine was asked.
    private var question = Question.none
    /// The work that the store is doing.
    private var work = Work.none
    private var hasRequests = false
    private var mayHaveNews = false
    /// Whether requests came after the question that is under way.
    private var isQuestionOld = false
    /// The journal's end at a moment after all requests had come. Nil if no answer showed it.
    private var endSeen: JournalMark?
    /// Whether no other node can append until this node's next append has its answer, or the connection ends. A turn
    /// keeps the node from being outrun for ever. It proves nothing: the append checks the state below it all the same.
    private var hasTurn = false
    private var isStopped = false
    /// The mark of the local store.
    public private(set) var mark: JournalMark?

    public init() {}

    /// Whether the store's contents are known to be the journal's past.
    public var isServing: Bool { link == .confirmed && !isStopped }

    /// Whether the journal's end is asked for, to refuse requests by it. A request that comes now has to ask anew.
    public var isAskingForEnd: Bool { batch == .asking }

    /// The actions to perform, in this order. `nextID` is called for a new name. An answer changes nothing if its
    /// question was not asked, or was asked on another connection.
    public mutating func handle(_ event: JournalEvent, nextID: () -> BatchID) -> [JournalAction] {
        if isStopped { return [] }
        switch event {
        case .began(let mark): return begin(mark)
        case .joined(let mark): return finish(.joining) ? begin(mark) : []
        case .connected:
            guard link == .connecting else { return [] }
            link = .unconfirmed
            return next()
        case .connectionLost: return disconnected()
        case .rows(let rows): return finish(.rows) ? received(rows, nextID) : []
        case .appended(let mark): return finish(.append) ? appended(mark) : []
        case .outrun(let wantsTurn): return finish(.append) ? outrun(wantsTurn) : []
        case .turn(let isGiven):
            guard finish(.turn) else { return [] }
            hasTurn = isGiven
            return read()
        case .turnEnded: return finish(.endOfTurn) ? turnEnded() : []
        case .ran(let decisions): return finish(.running) ? decided(decisions, nextID) : []
        case .stored(let mark): return finish(.storing) ? stored(mark) : []
        case .requestsCame:
            hasRequests = true
            (isQuestionOld, endSeen) = (true, nil)
            return next()
        case .journalGrew:
            mayHaveNews = true
            return next()
        }
    }

    private mutating func finish(_ expected: Question) -> Bool {
        guard question == expected else { return false }
        question = .none
        return true
    }

    private mutating func finish(_ expected: Work) -> Bool {
        guard work == expected else { return false }
        work = .none
        return true
    }

    // MARK: Starting, and losing the connection

    private mutating func begin(_ mark: JournalMark?) -> [JournalAction] {
        self.mark = mark
        if mark == nil {
            work = .joining
            return [.join]
        }
        link = .connecting
        return [.connect]
    }

    private mutating func disconnected() -> [JournalAction] {
        guard link != .none else { return [] }
        link = .connecting
        (question, endSeen, hasTurn) = (.none, nil, false)
        if batch == .asking { return leave() + [.connect] }
        if case .sent(let id) = batch { batch = .unknown(id) }
        return [.connect]
    }

    private mutating func leave() -> [JournalAction] {
        batch = .none
        hasRequests = true
        return [.abort]
    }

    // MARK: Reading

    private mutating func read() -> [JournalAction] {
        guard let mark else { return [] }
        question = .rows
        (mayHaveNews, isQuestionOld) = (false, false)
        return [.read(from: mark.position)]
    }

    /// Takes the rows from the store's own position on. The first row shows whether the store is the journal's past.
    private mutating func received(_ rows: [JournalHead], _ nextID: () -> BatchID) -> [JournalAction] {
        guard let mark else { return [] }
        guard let own = rows.first, let newest = rows.last, own.mark == mark else {
            // Trimmed rows are in a snapshot; missing or different rows were lost.
            let isTrimmed = rows.first.map { $0.mark.position > mark.position } ?? false
            return isTrimmed ? joinAgain() : stop(.forked(mark))
        }
        let above = rows.dropFirst()
        for (row, before) in zip(above, rows) where !row.follows(before) { return stop(.damaged(row.mark.position)) }
        if link == .unconfirmed { return confirm(above.first, newest: newest.mark, nextID) }
        endSeen = isQuestionOld ? nil : newest.mark
        if above.isEmpty {
            guard batch == .asking else { return next() }
            batch = .none
            return [.answer] + next()
        }
        let left = batch == .asking ? leave() : []
        work = .storing
        return left + [.apply(upTo: newest.mark)]
    }

    private mutating func joinAgain() -> [JournalAction] {
        let left: [JournalAction]
        switch batch {
        case .unknown, .seen: left = [.forget]
        default: left = batch == .none ? [] : leave()
        }
        (batch, link, endSeen, hasTurn) = (.none, .none, nil, false)
        return left + begin(nil)
    }

    private mutating func stop(_ reason: JournalAction.Reason) -> [JournalAction] {
        isStopped = true
        return [.stop(reason)]
    }

    // MARK: Appending

    /// On a new connection, rows may be seen that the engine can lose: after a crash, or after a wait for its standby
    /// that was broken off. An entry of our own after them shows that they are safe. `first` is the row above the
    /// store.
    private mutating func confirm(
        _ first: JournalHead?, newest: JournalMark, _ nextID: () -> BatchID
    ) -> [JournalAction] {
        var left: [JournalAction] = []
        switch batch {
        case .unknown(let id), .seen(let id, _):
            guard let first else {
                // Append the same entry once more: if the first try is still under way, one of the two finds its place
                // taken.
                batch = .unknown(id)
                return append(over: newest, .decided(id))
            }
            if first.batchID == id { batch = .seen(id, first.mark) } else { left = leave() }
        default: break
        }
        return left + append(over: newest, .empty(nextID()))
    }

    private mutating func append(over mark: JournalMark, _ entry: JournalAction.Entry) -> [JournalAction] {
        question = .append
        return [.append(over: mark, entry)]
    }

    private mutating func appended(_ entry: JournalMark) -> [JournalAction] {
        (link, hasTurn) = (.confirmed, false)
        switch batch {
        case .sent, .unknown: return commit(entry)
        case .seen(_, let seen):
            mayHaveNews = true
            return commit(seen)
        default:
            mayHaveNews = true
            return next()
        }
    }

    private mutating func commit(_ mark: JournalMark) -> [JournalAction] {
        batch = .committing
        work = .storing
        return [.commit(mark)]
    }

    private mutating func outrun(_ wantsTurn: Bool) -> [JournalAction] {
        hasTurn = false
        var left: [JournalAction] = []
        if case .sent = batch { left = leave() }
        guard wantsTurn else { return left + read() }
        question = .turn
        return left + [.beginTurn]
    }

    private mutating func endTurn() -> [JournalAction] {
        question = .endOfTurn
        return [.endTurn]
    }

    private mutating func turnEnded() -> [JournalAction] {
        hasTurn = false
        return batch == .asking ? refuse() : next()
    }

    // MARK: The requests

    private mutating func decided(_ decisions: JournalEvent.Decisions, _ nextID: () -> BatchID) -> [JournalAction] {
        guard let mark, batch == .running else { return [] }
        // The connection was lost meanwhile: the requests are decided again when there is one.
        guard link == .confirmed else { return leave() + next() }
        if decisions.contains(.changes) {
            let id = nextID()
            batch = .sent(id)
            return append(over: mark, .decided(id))
        }
        batch = .asking
        // There is nothing to append, which would end the turn.
        return hasTurn ? endTurn() : refuse()
    }

    /// The refusals must rest on the journal's end at a moment after the requests came. A node whose journal grows with
    /// each question has seen that end already when it decides again.
    private mutating func refuse() -> [JournalAction] {
        guard endSeen == mark else { return read() }
        batch = .none
        return [.answer] + next()
    }

    private mutating func stored(_ mark: JournalMark) -> [JournalAction] {
        self.mark = mark
        guard batch == .committing else { return next() }
        batch = .none
        return [.answer] + next()
    }

    /// The next actions, if no question and no work is under way.
    private mutating func next() -> [JournalAction] {
        guard question == .none, work == .none else { return [] }
        if link == .unconfirmed { return read() }
        guard link == .confirmed, batch == .none else { return [] }
        if mayHaveNews { return read() }
        guard hasRequests else { return hasTurn ? endTurn() : [] }
        hasRequests = false
        batch = .running
        work = .running
        return [.run]
    }
}
