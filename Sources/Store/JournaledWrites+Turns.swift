import Base
import Journal

/// Turns: a node whose entries come too late again and again asks the engine to let no other node append for a moment.
extension JournaledWrites {
    func beginTurn() {
        ask { () throws(JournalEngineError) in
            let isGiven = try engine.beginTurn()
            if isGiven { writer.counters.journal.turns.add() }
            handle(.turn(isGiven: isGiven))
        }
    }

    func endTurn() {
        ask { () throws(JournalEngineError) in
            try engine.endTurn()
            handle(.turnEnded)
        }
    }

    /// `sent`: when the entry that came too late was sent.
    func isTurnWanted(after sent: Instant) -> Bool {
        outruns.isTurnWanted(after: .nanoseconds(sent.nanoseconds), at: .nanoseconds(Instant.now.nanoseconds))
    }
}

extension Outruns {
    init(_ limits: JournalLimits) {
        self.init(
            countMin: limits.outrunsBeforeTurn, timeMin: limits.outrunTimeBeforeTurn, pause: limits.turnPause)
    }
}
