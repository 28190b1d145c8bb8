import Journal

/// Checks what must hold after every step. The first violation ends a run.
struct ModelChecker {
    private(set) var violation: String?
    /// The requests in the journal, by the position of their entry.
    private var inJournal: [UInt64: Int] = [:]
    private var refused: Set<UInt64> = []
    private var acknowledged: [UInt64: Int] = [:]
    private(set) var counts = Counts()

    struct Counts {
        var acknowledged = 0
        var refused = 0
        var unknown = 0
        var entries = 0
        var forks = 0
        var turns = 0
        var lostAcknowledged = 0

        var description: String {
            "\(entries) entries; \(acknowledged) changes acknowledged, \(refused) refused, "
                + "\(unknown) without an answer; \(turns) turns; \(forks) forks; \(lostAcknowledged) acknowledged "
                + "changes lost by engines that do not keep promises"
        }

        static func += (left: inout Counts, right: Counts) {
            left.acknowledged += right.acknowledged
            left.refused += right.refused
            left.unknown += right.unknown
            left.entries += right.entries
            left.forks += right.forks
            left.turns += right.turns
            left.lostAcknowledged += right.lostAcknowledged
        }
    }

    mutating func fail(_ text: @autoclosure () -> String) {
        if violation == nil { violation = text() }
    }

    mutating func countUnknown(_ count: Int) { counts.unknown += count }
    mutating func countFork() { counts.forks += 1 }
    mutating func countTurn() { counts.turns += 1 }

    /// Checks the rows that became visible since the last look.
    mutating func look(at engine: ModelEngine, from first: Int) {
        guard first < engine.rows.count else { return }
        for position in first..<engine.rows.count {
            let (row, before) = (engine.rows[position], engine.rows[position - 1])
            counts.entries += 1
            if row.head.previousHash != before.head.mark.hash || row.position != position {
                fail("entry \(position) does not follow the one before it")
            }
            var state = engine.states[position - 1]
            for (index, request) in row.requests.enumerated() {
                if inJournal[request.id] != nil { fail("request \(request.id) is in the journal twice") }
                if refused.contains(request.id) { fail("request \(request.id) was refused and happened") }
                inJournal[request.id] = position
                guard let put = state.decide(request), put == row.puts[index] else {
                    fail("entry \(position) does not follow from the state below it")
                    continue
                }
                state.apply(put)
            }
        }
    }

    /// Notes that a fail-over lost these rows. `mayLose`: the engine promised nothing.
    mutating func lost(_ rows: [Row], mayLose: Bool) {
        for row in rows {
            for request in row.requests {
                inJournal[request.id] = nil
                guard acknowledged[request.id] != nil else { continue }
                counts.lostAcknowledged += 1
                if !mayLose { fail("request \(request.id) was acknowledged and is lost") }
            }
        }
    }

    /// Checks a node's store, which is at a new mark.
    mutating func stored(_ node: ModelNode, _ engine: ModelEngine) {
        guard let store = node.store, engine.isPast(store.mark) else {
            // What an engine lost is noticed at the next question.
            if engine.losses == node.lossesSeen { fail("node \(node.number) is not the journal's past") }
            return
        }
        if store.state != engine.states[Int(store.mark.position)] {
            fail("node \(node.number) holds another state than the journal at \(store.mark.position)")
        }
    }

    mutating func answered(_ decisions: [ModelNode.Decision], by node: ModelNode, _ engine: ModelEngine) {
        let hasChanges = decisions.contains { $0.put != nil }
        for decision in decisions {
            let request = decision.request
            if decision.put != nil {
                acknowledge(request, node, engine)
            } else {
                refuse(request, node, engine, hasChanges)
            }
        }
    }

    private mutating func acknowledge(_ request: Request, _ node: ModelNode, _ engine: ModelEngine) {
        counts.acknowledged += 1
        guard let position = inJournal[request.id] else {
            if engine.losses == node.lossesSeen {
                fail("request \(request.id) was acknowledged and is not in the journal")
            }
            return
        }
        if position >= engine.safeCount { fail("request \(request.id) was acknowledged and may still be lost") }
        if position <= request.endBefore { fail("request \(request.id) happened before it was sent") }
        acknowledged[request.id] = position
    }

    private mutating func refuse(_ request: Request, _ node: ModelNode, _ engine: ModelEngine, _ hasChanges: Bool) {
        counts.refused += 1
        refused.insert(request.id)
        if inJournal[request.id] != nil { fail("request \(request.id) was refused and happened") }
        guard engine.losses == node.lossesSeen, let store = node.store else { return }
        let position = Int(store.mark.position)
        if position < request.endBefore { fail("request \(request.id) was refused over an old state") }
        // If the batch has changes too, the refusal was decided between two states.
        if !hasChanges, engine.isPast(store.mark), engine.states[position].decide(request) != nil {
            fail("request \(request.id) was refused where nothing stood against it")
        }
    }
}
