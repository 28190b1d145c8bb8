import Base

/// A doubt whether the store is the newest: its witness or its own meta pages say something else.
public enum Rollback: Error, Equatable, Sendable {
    /// The store lacks transactions that were acknowledged: it stands at `store`, and was at `witness`.
    case behind(store: UInt64, witness: UInt64)
    /// As `behind`, by the numbers of events: LMDB's number of the newest transaction was damaged as well.
    case eventsBehind(store: UInt64, witness: UInt64)
    /// The meta pages are not one transaction apart: what is called the newest may be the older one, with a bit flipped
    /// in its number.
    case metaPagesApart(newest: UInt64, other: UInt64)
    /// The store had a witness, and the file is gone or unreadable: a backup was restored, or files were deleted.
    case witnessMissing
    /// The witness belongs to another store: data.mdb was replaced by another one, or by one from before a rollback
    /// that was accepted.
    case witnessForeign
}

extension Rollback: CustomStringConvertible {
    public var description: String {
        switch self {
        case .behind(let store, let witness):
            "the store is older than its witness: it ends with transaction \(store), and \(witness) was committed"
        case .eventsBehind(let store, let witness):
            "the store is older than its witness: it ends with event \(store), and \(witness) was committed"
        case .metaPagesApart(let newest, let other):
            "the store may be older than it says: its meta pages name transactions \(newest) and \(other)"
        case .witnessMissing: "the file witness is missing or unreadable"
        case .witnessForeign: "the file witness belongs to another store"
        }
    }
}
