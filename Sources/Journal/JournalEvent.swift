/// An event that happened to a node.
public enum JournalEvent: Equatable, Sendable {
    /// The node starts, with the mark of its store; nil for a store with nothing in it.
    case began(JournalMark?)
    /// A snapshot replaced the store. Nil if there is none from which the journal goes on; then the node tries again.
    case joined(JournalMark?)
    case connected
    /// The connection is gone. Requests that were sent may still take effect.
    case connectionLost
    /// The answer to `read`: rows in their order, the newest last. It is empty if there are no rows from there on.
    case rows([JournalHead])
    /// The answer to `append`: the entry is in the journal, and the engine will not lose it.
    case appended(JournalMark)
    /// The answer to `append`: nothing was done, because another entry has that place or another state is below it.
    /// `wantsTurn`: this has happened so often that the node asks for a turn (`Outruns`).
    case outrun(wantsTurn: Bool)
    /// The answer to `beginTurn`.
    case turn(isGiven: Bool)
    /// The answer to `endTurn`.
    case turnEnded
    /// The requests that waited were decided, over the store's state and one after the other.
    case ran(Decisions)
    /// The local store is at this mark.
    case stored(JournalMark)
    /// Requests wait.
    case requestsCame
    /// The journal may have grown.
    case journalGrew

    /// The kinds of outcome among the decided requests.
    public struct Decisions: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let changes = Decisions(rawValue: 1)
        public static let refusals = Decisions(rawValue: 2)
    }
}
