import Journal

/// One node: the protocol and a shell around it with a store. A crash takes the store back to its last sync.
struct ModelNode {
    struct Store {
        var mark: JournalMark
        var state: ModelState
    }

    struct Decision {
        var request: Request
        let put: Put?
    }

    let number: Int
    let mistake: Mistake?
    private(set) var journal = JournalNode()
    /// The actions that the protocol wants, in this order. One step of the model performs one of them.
    var actions: [JournalAction] = []
    var isUp = false
    var stopReason: JournalAction.Reason?
    /// The number of the connection; nil while there is none.
    var session: Int?
    private(set) var store: Store?
    private var synced: Store?
    fileprivate(set) var waiting: [Request] = []
    fileprivate(set) var decided: [Decision] = []
    private var rowsRead: [Row] = []
    private(set) var sentRow: Row?
    fileprivate var keptDecisions: [Decision] = []
    private var isRequestUntold = false
    /// Whether the store was the journal's past when the engine last took a question.
    var wasPast = true
    /// The count of the engine's losses when it last answered.
    var lossesSeen = 0
    private var outruns: Outruns

    /// `outrunsMin`: how often the node is outrun before it asks for a turn. The model has no clock.
    init(number: Int, mistake: Mistake?, outrunsMin: Int) {
        self.number = number
        self.mistake = mistake
        outruns = Outruns(countMin: outrunsMin, timeMin: .zero, pause: .zero)
    }

    var isQuiet: Bool { actions.isEmpty && hasAnsweredAll }
    var hasAnsweredAll: Bool { waiting.isEmpty && decided.isEmpty }
    var syncedPosition: Int? { synced.map { Int($0.mark.position) } }

    mutating func handle(_ event: JournalEvent, _ random: inout ModelRandom) {
        actions += journal.handle(event) { BatchID(SIMD2(random.next(), random.next())) }
    }

    // MARK: Living

    mutating func start(_ random: inout ModelRandom) {
        isUp = true
        store = synced
        journal = JournalNode()
        handle(.began(store?.mark), &random)
    }

    /// The node's requests never get an answer.
    mutating func crash() {
        (isUp, session, actions, rowsRead, waiting, decided, sentRow) = (false, nil, [], [], [], [], nil)
    }

    mutating func sync() { synced = store }

    /// Takes a decision in, as if it had been made before the journal's end was asked for.
    mutating func decideBesides(_ request: Request) {
        guard let state = store?.state, state.decide(request) == nil else { return }
        waiting.removeAll { $0.id == request.id }
        decided.append(Decision(request: request, put: nil))
    }

    fileprivate mutating func dropStore() { (store, synced) = (nil, nil) }

    mutating func take(_ request: Request, _ random: inout ModelRandom) {
        waiting.append(request)
        isRequestUntold = true
        if mistake != .oldAnswerDecidedAgain || !journal.isAskingForEnd { tellOfRequests(&random) }
    }

    /// Tells the protocol of requests that it was not told of, perhaps by mistake.
    mutating func tellOfRequests(_ random: inout ModelRandom) {
        guard isRequestUntold else { return }
        isRequestUntold = false
        handle(.requestsCame, &random)
    }

    // MARK: The store

    mutating func join(_ snapshot: (mark: JournalMark, state: ModelState)?, _ random: inout ModelRandom) {
        store = snapshot.map { Store(mark: $0.mark, state: $0.state) }
        synced = store
        handle(.joined(store?.mark), &random)
    }

    /// Decides the waiting requests one after the other, each over the changes of those before it.
    mutating func run(_ random: inout ModelRandom) {
        guard var state = store?.state else { return }
        if !keptDecisions.isEmpty { return runAgainWithout(&random) }
        var decisions: JournalEvent.Decisions = []
        for request in waiting {
            let put = decide(request, over: state)
            if let put { state.apply(put) }
            decisions.insert(put == nil ? .refusals : .changes)
            decided.append(Decision(request: request, put: put))
        }
        waiting = []
        handle(.ran(decisions), &random)
        tellOfRequests(&random)
    }

    private func decide(_ request: Request, over state: ModelState) -> Put? {
        guard mistake == .noSettingsFence, case .claim(let key) = request.kind else { return state.decide(request) }
        return request.wasToggleOn && state.owners[key] == 0 ? .owner(key, request.id) : nil
    }

    mutating func abort() {
        if mistake == .noSecondRun { keptDecisions = decided }
        waiting = decided.map(\.request) + waiting
        forget()
    }

    mutating func forget() {
        decided = []
        sentRow = nil
    }

    func row(over mark: JournalMark, _ entry: JournalAction.Entry) -> Row {
        switch entry {
        case .empty(let id): Row(over: mark, id, node: number, requests: [], puts: [])
        case .decided(let id):
            Row(
                over: mark, id, node: number, requests: decided.filter { $0.put != nil }.map(\.request),
                puts: decided.compactMap(\.put))
        }
    }

    mutating func noteSent(_ row: Row) { sentRow = row }

    mutating func appended(_ mark: JournalMark, _ random: inout ModelRandom) {
        outruns.end()
        handle(.appended(mark), &random)
    }

    mutating func wasOutrun(_ random: inout ModelRandom) {
        let wantsTurn = outruns.isTurnWanted(after: .zero, at: .zero) && mistake != .noTurn
        handle(.outrun(wantsTurn: wantsTurn), &random)
    }

    mutating func commit(_ mark: JournalMark, _ random: inout ModelRandom) {
        for put in decided.compactMap(\.put) { store?.state.apply(put) }
        store?.mark = mark
        handle(.stored(mark), &random)
    }

    mutating func apply(upTo mark: JournalMark, _ random: inout ModelRandom) {
        for row in rowsRead where row.position > Int(store?.mark.position ?? 0) && row.position <= Int(mark.position) {
            if mistake == .ownEntriesLeftOut, row.node == number { continue }
            for put in row.puts { store?.state.apply(put) }
        }
        store?.mark = mark
        handle(.stored(mark), &random)
    }

    mutating func received(_ rows: [Row], _ random: inout ModelRandom) {
        rowsRead = rows
        var heads = rows.map(\.head)
        if mistake == .noForkCheck, let mark = store?.mark { heads = pretend(heads, mark) }
        handle(.rows(heads), &random)
    }

    /// The rows as they would be if the store were their past.
    private func pretend(_ heads: [JournalHead], _ mark: JournalMark) -> [JournalHead] {
        var heads = heads.filter { $0.mark.position > mark.position }
        if let first = heads.first, first.mark.position == mark.position + 1 {
            heads[0] = JournalHead(mark: first.mark, previousHash: mark.hash, batchID: first.batchID)
        }
        return [Self.own(mark)] + heads
    }

    mutating func answered() -> [Decision] {
        defer { forget() }
        return decided
    }
}

// MARK: - What only some runs do

extension ModelNode {
    /// The row at the store's own mark, as its node expects it.
    fileprivate static func own(_ mark: JournalMark) -> JournalHead {
        JournalHead(mark: mark, previousHash: JournalHash(.zero), batchID: BatchID(.zero))
    }

    mutating func pretendToBeAtTheEnd(_ random: inout ModelRandom) {
        guard let mark = store?.mark else { return }
        handle(.rows([Self.own(mark)]), &random)
    }

    fileprivate mutating func runAgainWithout(_ random: inout ModelRandom) {
        decided = keptDecisions
        keptDecisions = []
        let ids = decided.map(\.request.id)
        waiting.removeAll { ids.contains($0.id) }
        if !waiting.isEmpty { handle(.requestsCame, &random) }
        handle(.ran(decided.contains { $0.put != nil } ? .changes : .refusals), &random)
    }

    mutating func discard() {
        stopReason = nil
        dropStore()
    }

    mutating func forgetEnds(above end: Int) {
        for index in waiting.indices { waiting[index].endBefore = min(waiting[index].endBefore, end) }
        for index in decided.indices { decided[index].request.endBefore = min(decided[index].request.endBefore, end) }
    }
}
