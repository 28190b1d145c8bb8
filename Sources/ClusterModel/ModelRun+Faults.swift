import Journal

extension ModelRun {
    enum Fault: CaseIterable {
        case disconnect, crash, sync, snapshot, trim, forget, restartEngine, breakOffWait, failOver, rejoin
        case refuseTurn, endSilentTurn
    }

    /// Each seed has its own faults, so that faults that hide one another also come alone (swarm testing, Groce and
    /// others 2012). Every seed has the events that repair something.
    static func someFaults(_ random: inout ModelRandom) -> [Fault] {
        let chosen = Fault.allCases.flatMap { fault in [Fault](repeating: fault, count: random.below(4)) }
        return chosen + [.sync, .rejoin]
    }

    /// Something fails, or an operator does something.
    mutating func fault() {
        guard hasFaults else { return }
        let index = random.below(nodes.count)
        if !nodes[index].isUp, nodes[index].stopReason == nil { return nodes[index].start(&random) }
        switch faults[random.below(faults.count)] {
        case .disconnect: disconnect(index)
        case .crash: crash(index)
        case .sync: sync(index)
        case .snapshot: snapshot(index)
        case .trim: engine.trim()
        case .forget: engine.registered[index] = nil
        case .restartEngine: restartEngine()
        case .breakOffWait: breakOffWait()
        case .failOver: failOver()
        case .rejoin: rejoin(index)
        case .refuseTurn: tell(engine.refuseTurn())
        case .endSilentTurn: endSilentTurn()
        }
    }

    private mutating func endSilentTurn() {
        guard let (session, answers) = engine.endSilentTurn() else { return }
        note("connection \(session) has the turn, keeps silent and is ended")
        tell(answers)
        if let node = owner(of: session) { disconnect(node) }
    }

    /// The engine notices that the node that has the turn is gone.
    mutating func endAbandonedTurn() {
        guard let session = engine.turn, owner(of: session) == nil else { return }
        if !hasFaults || random.isOne(in: 8) { endSilentTurn() }
    }

    private mutating func disconnect(_ index: Int) {
        guard let session = nodes[index].session else { return }
        note("node \(index): connection \(session) is lost")
        nodes[index].session = nil
        // What was sent may be lost, or arrive later.
        for position in packets.indices.reversed() where packets[position].session == session {
            if case .answer = packets[position].message {
                packets.remove(at: position)
            } else if random.isOne(in: 2) {
                packets.remove(at: position)
            }
        }
        switch mistake {
        case .unknownIsSuccess where nodes[index].sentRow != nil, .unknownIsFailure where nodes[index].sentRow != nil:
            takeUnknown(index)
        case .unknownIsRepeated where nodes[index].sentRow != nil: nodes[index].abort()
        default: break
        }
        nodes[index].handle(.connectionLost, &random)
    }

    private mutating func takeUnknown(_ index: Int) {
        let decided = nodes[index].decided.map {
            ModelNode.Decision(request: $0.request, put: mistake == .unknownIsSuccess ? $0.put : nil)
        }
        checker.answered(decided, by: nodes[index], engine)
    }

    mutating func loseRequests(_ index: Int) {
        checker.countUnknown(nodes[index].decided.count + nodes[index].waiting.count)
    }

    private mutating func crash(_ index: Int) {
        guard nodes[index].isUp else { return }
        note("node \(index) crashes")
        loseRequests(index)
        // What it had sent may still arrive.
        nodes[index].crash()
        packets.removeAll { packet in
            guard packet.node == index, case .answer = packet.message else { return false }
            return true
        }
    }

    private mutating func sync(_ index: Int) {
        guard nodes[index].isUp, nodes[index].store != nil else { return }
        nodes[index].sync()
        if engine.registered[index] != nil || random.isOne(in: 2) {
            engine.registered[index] = nodes[index].syncedPosition
        }
    }

    private mutating func snapshot(_ index: Int) {
        guard nodes[index].isUp, nodes[index].journal.isServing, let store = nodes[index].store else { return }
        engine.addSnapshot(store.mark, store.state)
    }

    private mutating func restartEngine() {
        let first = engine.rows.count
        note("the primary starts again")
        engine.restart(keepsPending: random.isOne(in: 2))
        isStandbyAway = random.isOne(in: 2)
        checker.look(at: engine, from: first)
        dropConnections()
    }

    private mutating func breakOffWait() {
        let first = engine.rows.count
        guard let (session, answers) = engine.breakOffWait() else { return }
        note("the wait for the standby is broken off")
        tell(answers)
        checker.look(at: engine, from: first)
        // PostgreSQL answers as usual, with a warning. A node that heeds it treats the answer as a lost connection.
        if mistake == .warningIgnored {
            return tell([(session: session, .appended(engine.rows[first].head.mark))])
        }
        if let node = owner(of: session) { disconnect(node) }
    }

    private mutating func failOver() {
        let count = losesCommits ? random.below(3) : 0
        let (rows, unanswered) = engine.failOver(losing: count)
        note("the standby takes over at \(engine.end); rows are lost: \(rows.count)")
        checker.lost(rows, mayLose: losesCommits)
        forgetEnds()
        // Behind a pooler of connections, only the clients that wait for an answer notice it.
        guard random.isOne(in: 2) else { return dropConnections() }
        for session in unanswered { if let node = owner(of: session) { disconnect(node) } }
    }

    /// If the engine lost rows that a client saw, they are no bound for the client any more.
    private mutating func forgetEnds() {
        for index in nodes.indices { nodes[index].forgetEnds(above: engine.end) }
    }

    /// Nothing from or to an old primary arrives or takes effect any more.
    private mutating func dropConnections() {
        packets = []
        for index in nodes.indices { disconnect(index) }
    }

    /// An operator gives up a node's store.
    private mutating func rejoin(_ index: Int) {
        guard nodes[index].stopReason != nil else { return }
        nodes[index].discard()
        nodes[index].start(&random)
    }
}
