import Base
import Reactor
import Transport
import Wire

/// A connection of some protocol, which brings calls to the router and takes their outcomes back. This is all that the
/// router knows of it, so that another protocol is another carrier, and the handlers do not notice.
///
/// A carrier is an actor on an event loop. It numbers its calls (`stream`), and ends them when the client does, when
/// their deadline passes and when it ends itself. Every call has exactly one outcome: `respond`, `fail` or `endStream`.
protocol CallCarrier: Actor {
    nonisolated var loop: EventLoop { get }
    /// Unique among all carriers of the server: for the ids of requests that bring none.
    nonisolated var id: UInt64 { get }
    nonisolated var peerAddress: Text { get }
    /// The router's own data about this carrier.
    var connectionContext: ConnectionContext { get }
    var isAuthenticated: Bool { get }
    var form: CallForm { get }
    /// The client showed a valid credential: the carrier gives it larger limits and longer deadlines. It waits in
    /// `line` where connections take turns.
    func authenticated(line: Text)

    /// Ends a unary call with status OK: `write` appends the response message. If `write` throws, the call is not
    /// answered yet.
    func respond(
        stream: UInt32, metadata: OutgoingMetadata, _ write: (inout ByteBuffer) throws -> Void) rethrows
    /// Ends a call with a failure.
    func fail(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata)
    /// Ends a stream with status OK.
    func endStream(_ stream: UInt32)

    /// Runs the rest of a call as a task on the loop, which may begin at once; see `Connection.run`.
    func run(
        stream: UInt32, kind: StreamKind, deadline: Instant, credential: AnyObject?, requestID: Text,
        requestByteCount: Int, _ operation: @escaping @Sendable (isolated Self) async -> Void)
    /// The call holds so many bytes beside its request, until it ends: see `Connection.holds`.
    func holds(stream: UInt32, byteCount: Int)
    /// The call that is begun next will ask for `pageTurn`, once.
    func awaitsPage()
    /// Returns when this call may make a page of a list; see `Connection.pageTurn`.
    func pageTurn(stream: UInt32, line: Text) async throws
    /// Returns when this call may do a piece of work that takes as long as a page; see `Connection.workTurn`.
    func workTurn(line: Text) async throws
    /// Sends one message of a stream when the client has room for it. `write` appends the message; it is called once,
    /// when there is room, so that a waiting stream holds no message. If `write` finds that there is no message,
    /// nothing is sent. `turn`: nil for a message that is at hand. `heldByteCount` is the memory that the caller holds
    /// meanwhile. Throws `CancellationError`, and what `write` throws.
    func send<Made: Sendable>(
        stream: UInt32, heldByteCount: Int, turn: MakingTurn?,
        _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made
    /// The client's next message, or nil when it sends no more. Throws `CancellationError`.
    func nextMessage(stream: UInt32) async throws -> [UInt8]?
}

/// Calls over the network. `Connection` itself knows how each outcome is written.
extension Connection: CallCarrier {
    // Proof: the dispatcher of every connection is the router, and its `makeConnectionContext` makes nothing else.
    var connectionContext: ConnectionContext { unsafeDowncast(context, to: ConnectionContext.self) }
}
