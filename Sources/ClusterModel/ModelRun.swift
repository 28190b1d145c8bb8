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
        /// The round of a race in which it arrives.
        let arrival: Int
        let message: Message
    }

    let mistake: Mistake?
    /// The engine may lose commits that it had promised.
    let losesCommits: Bool
    /// The faults that may happen, each as often as it stands here.
    let faults: [Fault]
    /// How many of a thousand events tell a node that the journal may have grown.
    private let newsShare: Int
    /// How often a node is outrun before it asks for a turn.
    let outrunsMin: Int
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
    /// In a race: the nodes that are far from the engine, how many rounds their packets take, and the present round.
    var far: Set<Int> = []
    var distance = 0
    var round = 0

    /// `nodeCount`: 2 to 5, as the seed decides, if nil.
    init(seed: UInt64, mistake: Mistake?, nodeCount: Int?) {
        self.mistake = mistake
        var random = ModelRandom(seed: seed)
        losesCommits = random.isOne(in: 4)
        faults = Self.someFaults(&random)
        newsShare = [0, 10, 50][random.below(3)]
        let chosen = 2 + random.below(4)
        let outrunsMin = [1, 3, 10][random.below(3)]
        self.outrunsMin = outrunsMin
        nodes = (0..<(nodeCount ?? chosen)).map { number in
            ModelNode(number: number, mistake: mistake, outrunsMin: outrunsMin)
        }
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
    mutating func settle() -> Int {
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

    mutating func act(_ index: Int) {
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
        case .beginTurn: ask(index, .beginTurn)
        case .endTurn: endTurn(index)
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
        if let session = nodes[index].session, engine.turn == session {
            checker.fail("node \(index) answers and keeps its turn")
        }
        checker.answered(nodes[index].answered(), by: nodes[index], engine)
        nodes[index].tellOfRequests(&random)
    }

    private mutating func append(_ index: Int, over mark: JournalMark, _ entry: JournalAction.Entry) {
        let row = nodes[index].row(over: mark, entry)
        if case .decided = entry { nodes[index].noteSent(row) }
        if mistake == .noConfirmation, nodes[index].session != engine.turn, case .empty = entry {
            // The node acts as if the entry had been appended, which it was not.
            return nodes[index].handle(.appended(mark), &random)
        }
        ask(index, .append(over: mark, row, checksState: mistake != .appendOverAnything))
    }

    private mutating func endTurn(_ index: Int) {
        if mistake == .turnKept { return nodes[index].handle(.turnEnded, &random) }
        ask(index, .endTurn)
    }

    private mutating func ask(_ index: Int, _ question: ModelEngine.Question) {
        guard let session = nodes[index].session else { return }
        packets.append(
            Packet(node: index, session: session, arrival: arrival(index), message: .question(question)))
    }

    // MARK: The network

    private func arrival(_ node: Int) -> Int { far.contains(node) ? round + distance : 0 }

    /// Any packet that may have arrived. Outside of a race, the network may take any time.
    private mutating func nextPacket() -> Packet? {
        guard !packets.isEmpty else { return nil }
        let first = random.below(packets.count)
        if far.isEmpty { return packets.remove(at: first) }
        let arrived = (first..<first + packets.count).first { packets[$0 % packets.count].arrival <= round }
        return arrived.map { packets.remove(at: $0 % packets.count) }
    }

    mutating func deliver() {
        guard let packet = nextPacket() else { return replicate() }
        note("node \(packet.node), connection \(packet.session): \(packet.message)")
        switch packet.message {
        case .question(let question):
            // A row that was lost may come back, because its author appends the same row once more.
            nodes[packet.node].wasPast = nodes[packet.node].store.map { engine.isPast($0.mark) } ?? false
            // An append of a lost connection may still take effect; nobody learns of it.
            tell(engine.take(question, session: packet.session))
        case .answer(let answer, let losses):
            guard nodes[packet.node].session == packet.session else { return }
            nodes[packet.node].lossesSeen = losses
            take(answer, packet.node)
        }
    }

    private mutating func take(_ answer: ModelEngine.Answer, _ node: Int) {
        switch answer {
        case .rows(let rows): nodes[node].received(rows, &random)
        case .appended(let mark): nodes[node].appended(mark, &random)
        case .outrun: nodes[node].wasOutrun(&random)
        case .turn(let isGiven):
            if isGiven { checker.countTurn() }
            nodes[node].handle(.turn(isGiven: isGiven), &random)
        case .inserted(let mark):
            ask(node, .commit)
            if mistake == .insertedIsAppended { nodes[node].appended(mark, &random) }
        case .turnEnded: nodes[node].handle(.turnEnded, &random)
        }
    }

    func owner(of session: Int) -> Int? { nodes.firstIndex { $0.session == session } }

    mutating func tell(_ answers: [(session: Int, ModelEngine.Answer)]) {
        for (session, answer) in answers {
            guard let node = owner(of: session) else { continue }
            let message = Message.answer(answer, losses: engine.losses)
            packets.append(Packet(node: node, session: session, arrival: arrival(node), message: message))
        }
    }

    mutating func replicate() {
        endAbandonedTurn()
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
        let key = random.below(ModelState.keyCount)
        let kind: Request.Kind =
            switch random.below(10) {
            case ..<5: .rotate(key, from: random.isOne(in: 4) ? (lastRequest + 1) / 2 : state.tokens[key])
            case ..<7: .claim(key)
            case ..<9: .release(key)
            default: .toggle(!state.isToggleOn)
            }
        request(kind, of: index)
    }

    /// A client asks a node for something.
    mutating func request(_ kind: Request.Kind, of index: Int) {
        guard let state = nodes[index].store?.state else { return }
        lastRequest += 1
        let request = Request(
            id: lastRequest, kind: kind, wasToggleOn: state.isToggleOn, endBefore: engine.end)
        note("node \(index): \(request)")
        nodes[index].take(request, &random)
        let isEndAsked = nodes[index].journal.isAskingForEnd
        if mistake == .oldAnswerOfEnd, isEndAsked { nodes[index].decideBesides(request) }
    }
}
