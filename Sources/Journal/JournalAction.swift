/// What the shell has to do.
public enum JournalAction: Equatable, Sendable {
    /// Take the place of a store that is empty or cannot go on: a snapshot whose mark is a row of the journal.
    case join
    case connect
    /// Ask for the rows from this position on, that one included.
    case read(from: UInt64)
    /// Append an entry over this mark, under this name: what was decided, or nothing.
    case append(over: JournalMark, Entry)
    /// Decide the requests that wait, in a transaction that stays open. Those that were decided and not answered
    /// wait again.
    case run
    /// Leave the open transaction. What was decided in it waits again.
    case abort
    /// Leave the open transaction. What was decided in it gets no answer: whether it happened cannot be found out.
    case forget
    /// Commit the open transaction, at this mark.
    case commit(JournalMark)
    /// Take over the rows that were read, up to this mark.
    case apply(upTo: JournalMark)
    /// Answer what was decided.
    case answer
    /// Say nothing any more.
    case stop(Reason)

    /// What is appended.
    public enum Entry: Equatable, Sendable {
        case decided(BatchID)
        /// Shows that everything before it is safe.
        case empty(BatchID)
    }

    /// Why a node says nothing any more.
    public enum Reason: Error, Equatable, Sendable {
        /// The journal has another row at the store's position, or none: it lost what this node holds.
        case forked(JournalMark)
        /// The rows do not follow one another.
        case damaged(UInt64)
    }
}
