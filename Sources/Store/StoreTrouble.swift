/// The reason why a store that still serves reads takes fewer writes, or none.
public enum StoreTrouble: Sendable, Equatable {
    /// The file has reached the map's size (`map_bytes`), except for the reserve.
    case mapFull
    /// The disk, or a quota on it, does not let the file grow any more; the file has the reserve left.
    case diskFull
    /// The file system was mounted read-only, as Linux does with one whose disk fails.
    case readOnly
    /// The data file was deleted or replaced: new writes are lost when the process ends.
    case removed
    /// The engine of the cluster's journal does not answer.
    case journalAway
    /// This node's clock is too far from the engine's.
    case clockWrong
    /// A commit has waited for the disk for seconds (`Store.isDiskSilent`). The writer cannot report it: it waits.
    case diskSilent
    /// The process ended while it made a snapshot of its cluster: a page may be damaged. The store takes all writes.
    case snapshotsHeldBack
}

extension StoreTrouble: CustomStringConvertible {
    public var description: String {
        switch self {
        case .mapFull: "the database has reached map_bytes; only what frees space or revokes is written"
        case .diskFull: "the disk is full; only what frees space or revokes is written"
        case .readOnly: "the disk is read-only; nothing is written"
        case .removed: "the data file was removed under the running server; nothing is written, the server will end"
        case .journalAway: "the engine of the journal does not answer; nothing is written until it does"
        case .clockWrong:
            "this node's clock is too far from the journal's engine's; nothing is written until it is right"
        case .diskSilent: "the disk does not answer; changes wait for it"
        case .snapshotsHeldBack:
            "the process ended while it made a snapshot of the cluster; posternd --verify-store tells whether the "
                + "store is damaged"
        }
    }
}
