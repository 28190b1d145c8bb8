/// An action that the shell has to perform.
public enum JournalAction: Equatable, Sendable {
    /// Replace a store that is empty or cannot go on by a snapshot whose mark is a row of the journal.
    case join
    case connect
    /// Ask for the rows from this position on, including this row.
    case read(from: UInt64)
    /// Append an entry over this mark, under the entry's name: the decided changes, or nothing.
    case append(over: JournalMark, Entry)
    /// Ask the engine for a turn: no other node can append until this node's next append has its answer.
    case beginTurn
    /// Give the turn back without an append.
    case endTurn
    /// Decide the requests that wait, in a transaction that stays open. Requests that were decided and not answered
    /// wait again.
    case run
    /// Abort the open transaction. The requests that were decided in it wait again.
    case abort
    /// Abort the open transaction. The requests that were decided in it get no answer: nobody can find out whether
    /// they took effect.
    case forget
    /// Commit the open transaction, at this mark.
    case commit(JournalMark)
    /// Apply the rows that were read, up to this mark.
    case apply(upTo: JournalMark)
    /// Answer the decided requests.
    case answer
    /// Answer nothing any more.
    case stop(Reason)

    /// The contents of an appended entry.
    public enum Entry: Equatable, Sendable {
        case decided(BatchID)
        /// Shows that everything before it is safe.
        case empty(BatchID)
    }

    /// The reason why a node answers nothing any more.
    public enum Reason: Error, Equatable, Sendable {
        /// The journal has another row at the store's position, or none: it lost entries that this node holds.
        case forked(JournalMark)
        /// The rows do not follow one another.
        case damaged(UInt64)
    }
}
