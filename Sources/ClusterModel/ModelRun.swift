import Journal

/// One run: some nodes, an engine, clients and faults, in the order that a seed decides.
struct ModelRun {
    enum Message {
        case question(ModelEngine.Question)
        /// `losses`: the engine's count when it gave the answer.
        case answer(ModelEngine.Answer, losses: Int)
    }

    struct Packet {
        let node: Int
        let session: Int
        let message: Message
    }

    let mistake: Mistake?
    /// The engine may lose commits that it had promised.
    let losesCommits: Bool
    /// The faults that may happen, each as often as it stands here.
    let faults: [Fault]
    /// How many of a thousand events tell a node that the journal may have grown.
    private let newsShare: Int
    var random: ModelRandom
    var engine = ModelEngine()
    var nodes: [ModelNode]
    var checker = ModelChecker()
    var packets: [Packet] = []
    private var lastSession = 0
    private var lastRequest: UInt64 = 0
    var hasFaults = true
    /// Takes a line for each event, to find the cause of a violation.
    var trace: ((String) -> Void)?
    var isStandbyAway = false

    /// `nodeCount`: 2 to 5, as the seed decides, if nil.
    init(seed: UInt64, mistake: Mistake?, nodeCount: Int?) {
        self.mistake = mistake
        var random = ModelRandom(seed: seed)
        losesCommits = random.isOne(in: 4)
        faults = Self.someFaults(&random)
        newsShare = [0, 10, 50][random.below(3)]
        let chosen = 2 + random.below(4)
        nodes = (0..<(nodeCount ?? chosen)).map { ModelNode(number: $0, mistake: mistake) }
        self.random = random
    }

    /// Takes `steps` steps, or fewer if there is a violation. Then all faults end, and all nodes must agree.
    mutating func run(steps: Int) -> Int {
        for index in nodes.indices { nodes[index].start(&random) }
        for step in 0..<steps {
            self.step()
            if checker.violation != nil { return step + 1 }
        }
        return steps + settle()
    }

    func note(_ line: @autoclosure () -> String) { if let trace { trace(line()) } }

    private mutating func step() {
        switch random.below(1_000) {
        case ..<400: actSomewhere()
        case ..<720: deliver()
        case ..<820: replicate()
        case ..<930: request()
        case ..<(930 + newsShare): grow(random.below(nodes.count))
        case 980...: fault()
        default: actSomewhere()
        }
    }

    /// One action of the first node that has any, counted from a random node.
    private mutating func actSomewhere() {
        let first = random.below(nodes.count)
        let index = (first..<first + nodes.count).first { !nodes[$0 % nodes.count].actions.isEmpty }
        if let index { act(index % nodes.count) } else { deliver() }
    }

    private mutating func grow(_ index: Int) {
        if nodes[index].isUp { nodes[index].handle(.journalGrew, &random) }
    }

    /// Nothing fails any more: all nodes must reach the journal's end, with everything answered.
    private mutating func settle() -> Int {
        hasFaults = false
        for index in nodes.indices where !nodes[index].isUp { nodes[index].start(&random) }
        for step in 0..<20_000 {
            for index in nodes.indices { grow(index) }
            for _ in 0..<max(20, 4 * nodes.count) {
                act(random.below(nodes.count))
                deliver()
                replicate()
            }
            if checker.violation != nil { return step * 60 }
            if isSettled { return step * 60 }
        }
        checker.fail("the nodes do not come to an end: \(nodes.map { "\($0.journal) \($0.actions)" })")
        return 0
    }

    private var isSettled: Bool {
        guard engine.pending == nil else { return false }
        return nodes.allSatisfy { node in
            if node.stopReason != nil { return true }
            return node.isQuiet && node.journal.isServing && node.store.map { Int($0.mark.position) } == engine.end
        }
    }

    // MARK: Nodes

    private mutating func act(_ index: Int) {
        guard nodes[index].isUp, !nodes[index].actions.isEmpty else { return }
        let action = nodes[index].actions.removeFirst()
        note("node \(index): \(action)")
        switch action {
        case .join:
            let snapshot = engine.newestSnapshot()
            nodes[index].lossesSeen = engine.losses
            nodes[index].join(snapshot, &random)
            engine.registered[index] = nodes[index].syncedPosition
        case .connect:
            lastSession += 1
            nodes[index].session = lastSession
            nodes[index].handle(.connected, &random)
        case .read(let position):
            if mistake == .refusalWhileBehind, nodes[index].journal.isAskingForEnd {
                return nodes[index].pretendToBeAtTheEnd(&random)
            }
            ask(index, .read(from: Int(position)))
        case .append(let mark, let entry): append(index, over: mark, entry)
        case .run:
            nodes[index].run(&random)
            if mistake == .answerBeforeAppend { answer(index) }
        case .abort: nodes[index].abort()
        case .forget:
            checker.countUnknown(nodes[index].decided.count)
            nodes[index].forget()
        case .commit(let mark):
            nodes[index].commit(mark, &random)
            checker.stored(nodes[index], engine)
        case .apply(let mark):
            nodes[index].apply(upTo: mark, &random)
            checker.stored(nodes[index], engine)
        case .answer: answer(index)
        case .stop(let reason): stop(index, reason)
        }
    }

    private mutating func stop(_ index: Int, _ reason: JournalAction.Reason) {
        if case .damaged = reason { checker.fail("node \(index) finds the journal damaged") }
        if nodes[index].wasPast { checker.fail("node \(index) says it is forked, and it is not") }
        checker.countFork()
        loseRequests(index)
        nodes[index].stopReason = reason
        nodes[index].crash()
        engine.registered[index] = nil
    }

    private mutating func answer(_ index: Int) {
        checker.answered(nodes[index].answered(), by: nodes[index], engine)
        nodes[index].tellOfRequests(&random)
    }

    private mutating func append(_ index: Int, over mark: JournalMark, _ entry: JournalAction.Entry) {
        let row = nodes[index].row(over: mark, entry)
        if case .decided = entry { nodes[index].noteSent(row) }
        if mistake == .noConfirmation, case .empty = entry {
            // The node acts as if the entry had been appended, which it was not.
            return nodes[index].handle(.appended(mark), &random)
        }
        ask(index, .append(over: mark, row, checksState: mistake != .appendOverAnything))
    }

    private mutating func ask(_ index: Int, _ question: ModelEngine.Question) {
        guard let session = nodes[index].session else { return }
        packets.append(Packet(node: index, session: session, message: .question(question)))
    }

    // MARK: The network

    private mutating func deliver() {
        guard !packets.isEmpty else { return replicate() }
        let packet = packets.remove(at: random.below(packets.count))
        note("node \(packet.node), connection \(packet.session): \(packet.message)")
        switch packet.message {
        case .question(let question):
            // A row that was lost may come back, because its author appends the same row once more.
            nodes[packet.node].wasPast = nodes[packet.node].store.map { engine.isPast($0.mark) } ?? false
            // An append of a lost connection may still take effect; nobody learns of it.
            if let answer = engine.take(question, session: packet.session) {
                reply(answer, packet.node, packet.session)
            }
        case .answer(let answer, let losses):
            guard nodes[packet.node].session == packet.session else { return }
            nodes[packet.node].lossesSeen = losses
            switch answer {
            case .rows(let rows): nodes[packet.node].received(rows, &random)
            case .appended(let mark): nodes[packet.node].handle(.appended(mark), &random)
            case .outrun: nodes[packet.node].handle(.outrun, &random)
            }
        }
    }

    private mutating func reply(_ answer: ModelEngine.Answer, _ node: Int, _ session: Int) {
        packets.append(Packet(node: node, session: session, message: .answer(answer, losses: engine.losses)))
    }

    func owner(of session: Int) -> Int? { nodes.firstIndex { $0.session == session } }

    mutating func tell(_ answers: [(session: Int, ModelEngine.Answer)]) {
        for (session, answer) in answers {
            if let node = owner(of: session) { reply(answer, node, session) }
        }
    }

    private mutating func replicate() {
        if isStandbyAway, hasFaults, !random.isOne(in: 32) { return }
        isStandbyAway = false
        let first = engine.rows.count
        tell(engine.replicate())
        checker.look(at: engine, from: first)
    }

    // MARK: Clients

    private mutating func request() {
        let index = random.below(nodes.count)
        guard nodes[index].isUp, nodes[index].waiting.count < 4, let state = nodes[index].store?.state else { return }
        lastRequest += 1
        let key = random.below(ModelState.keyCount)
        let kind: Request.Kind =
            switch random.below(10) {
            case ..<5: .rotate(key, from: random.isOne(in: 4) ? lastRequest / 2 : state.tokens[key])
            case ..<7: .claim(key)
            case ..<9: .release(key)
            default: .toggle(!state.isToggleOn)
            }
        let request = Request(
            id: lastRequest, kind: kind, wasToggleOn: state.isToggleOn, endBefore: engine.end)
        note("node \(index): \(request)")
        nodes[index].take(request, &random)
        let isEndAsked = nodes[index].journal.isAskingForEnd
        if mistake == .oldAnswerOfEnd, isEndAsked { nodes[index].decideBesides(request) }
    }
}
