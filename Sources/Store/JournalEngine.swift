public import Base
public import Journal

/// The engine that keeps the journal of a cluster: a table to append to, with the entry's position as its key.
///
/// Used by the writer's thread alone. Each call blocks until the engine answered, or until the connection counts as
/// lost; then the engine may still do what it was asked.
public protocol JournalEngine: AnyObject, Sendable {
    /// The cluster that the store belongs to: the engine must hold the same one. Called once, before anything else.
    func use(clusterID: [UInt8])

    /// Leaves the connection there is, if any, and makes another one.
    func connect() throws(JournalEngineError)
    func disconnect()

    /// The rows from `position` on, that one included and in their order, up to the newest.
    func heads(from position: UInt64) throws(JournalEngineError) -> [JournalHead]

    /// Some of the entries from `position` on, at least one, opened and proved to belong to `heads`.
    func entries(for heads: ArraySlice<JournalHead>) throws(JournalEngineError) -> [JournaledEntry]

    /// Appends over `mark`. Nil: another entry has that place, or the row at `mark` is another one.
    func append(_ entry: [UInt8], id: BatchID, over mark: JournalMark) throws(JournalEngineError) -> JournalMark?

    /// What the engine's clock said in its last answer; nil where it does not tell.
    var time: Timestamp? { get }

    /// Sleeps until the journal may have grown (true), `descriptor` is readable, or `deadline` has passed.
    func wait(for descriptor: Int32, until deadline: Instant?) throws(JournalEngineError) -> Bool
}

/// An entry of the journal as it was read.
public struct JournaledEntry: Sendable {
    public let mark: JournalMark
    /// A `JournalEntry`; empty for one that only shows that what is before it is safe.
    public let bytes: [UInt8]

    public init(mark: JournalMark, bytes: [UInt8]) {
        self.mark = mark
        self.bytes = bytes
    }
}

public enum JournalEngineError: Error, Sendable {
    /// There is no connection any more, or none can be made. What was asked last may still be done.
    case connectionLost(String)
    /// The row at this position is not what its author wrote.
    case damaged(UInt64)
    /// Trying again does not help: another cluster, a form that is too new, an engine that forgets what it confirmed.
    case unusable(String)
}

extension JournalEngineError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .connectionLost(let reason), .unusable(let reason): reason
        case .damaged(let position): "entry \(position) of the journal is not what its author wrote"
        }
    }
}
