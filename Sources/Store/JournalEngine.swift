public import Base
public import Journal

/// The engine that keeps the journal of a cluster: a table to append to, with the entry's position as its key.
///
/// Used by the writer's thread alone. Each call blocks until the engine answered, or until the connection counts as
/// lost. In the second case, the engine may still carry out the request.
public protocol JournalEngine: AnyObject, Sendable {
    /// The cluster that the store belongs to: the engine must hold the same one. Called once, before anything else.
    func use(clusterID: [UInt8])

    /// Closes the present connection, if any, and makes a new one.
    func connect() throws(JournalEngineError)
    func disconnect()

    /// The rows from `position` on, including that row, in their order, up to the newest. If the engine has to be asked
    /// several times, `goesOn` is called in between, and false ends it: then throws `.connectionLost`.
    func heads(from position: UInt64, while goesOn: () -> Bool) throws(JournalEngineError) -> [JournalHead]

    /// Some of the entries from `position` on, at least one, opened and proved to belong to `heads`.
    func entries(for heads: ArraySlice<JournalHead>) throws(JournalEngineError) -> [JournaledEntry]

    /// Appends over `mark`. Returns nil if another entry has that place, or if the row at `mark` is another one.
    func append(_ entry: [UInt8], id: BatchID, over mark: JournalMark) throws(JournalEngineError) -> JournalMark?

    /// Asks for a turn: no other node can append until this node's next `append` has its answer, `endTurn` was called,
    /// or the connection has ended. The engine ends the connection of a node that keeps silent in its turn. Returns
    /// false if there is no turn to be had now.
    func beginTurn() throws(JournalEngineError) -> Bool

    /// Gives the turn back without an append.
    func endTurn() throws(JournalEngineError)

    /// The engine's time in its last answer; nil if the engine does not tell it.
    var time: Timestamp? { get }

    /// Sleeps until the journal may have grown (true), `descriptor` is readable, or `deadline` has passed.
    func wait(for descriptor: Int32, until deadline: Instant?) throws(JournalEngineError) -> Bool
}

/// An entry of the journal as it was read.
public struct JournaledEntry: Sendable {
    public let mark: JournalMark
    /// A `JournalEntry`. It is empty if the entry only shows that the entries before it are safe.
    public let bytes: [UInt8]

    public init(mark: JournalMark, bytes: [UInt8]) {
        self.mark = mark
        self.bytes = bytes
    }
}

public enum JournalEngineError: Error, Sendable {
    /// The connection was lost, or none can be made. The engine may still carry out the last request.
    case connectionLost(String)
    /// The row at this position is not what its author wrote.
    case damaged(UInt64)
    /// A retry does not help: another cluster, a form that is too new, an engine that forgets what it confirmed.
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
