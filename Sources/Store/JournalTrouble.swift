/// The reason why the journal of a cluster keeps a store from writing, or from going on.
public enum JournalTrouble: Error, Equatable, Sendable {
    /// The engine does not answer. The write was not made, and never will be.
    case away
    /// The node lacks so many entries that it has been taking them for too long. The write was not made, and never will
    /// be.
    case behind
    /// The connection was lost while the write was on its way, and it cannot be found out whether it was made.
    case outcomeUnknown
    /// The write is larger than an entry can be.
    case entryTooLarge
    /// This node's clock is too far from the engine's: the write was not made. The value is positive if the node is
    /// ahead.
    case clockWrong(Duration)
    /// The store has not joined a cluster, and a journal was named.
    case notJoined
    /// The store belongs to a cluster, and no journal was named.
    case journalNotNamed
    /// The store holds entries that the journal does not have, or other ones: the engine lost what it had confirmed.
    case forked(position: UInt64)
    /// The entries that the store lacks are gone from the journal: the store has to join again by a snapshot.
    case trimmed(position: UInt64)
    /// An entry was altered, replayed or moved, or the entries do not follow one another.
    case damaged(position: UInt64)
    /// An entry of a newer server.
    case newer(position: UInt64)
    case unusable(String)

    /// Whether the store can write nothing after this trouble. Otherwise the trouble may pass: a later try may succeed.
    public var endsTheStore: Bool {
        switch self {
        case .away, .behind, .outcomeUnknown, .entryTooLarge, .clockWrong: false
        default: true
        }
    }

    /// Whether this node cannot find out from the journal what is so now. Nothing was done; another node may answer.
    public var isNodeBehind: Bool { self == .away || self == .behind }
}

extension JournalTrouble: CustomStringConvertible {
    public var description: String {
        switch self {
        case .away: "the journal's engine does not answer"
        case .behind: "this node is far behind the journal, and takes its entries"
        case .outcomeUnknown: "whether the write took effect is not known: the journal was lost on the way"
        case .entryTooLarge: "the write is larger than an entry of the journal can be"
        case .clockWrong(let ahead):
            "this node's clock is \(ahead.components.seconds.magnitude) s \(ahead < .zero ? "behind" : "ahead of") the "
                + "engine's; nothing is written meanwhile"
        case .notJoined: "the store has not joined the cluster of this journal"
        case .journalNotNamed: "the store belongs to a cluster, and its journal was not named"
        case .forked(let position):
            "forked: the store holds entry \(position), and the journal does not hold the same one"
        case .trimmed(let position): "what comes after entry \(position) is gone from the journal"
        case .damaged(let position): "entry \(position) of the journal is not what its author wrote"
        case .newer(let position): "entry \(position) of the journal was written by a newer server"
        case .unusable(let reason): reason
        }
    }
}
