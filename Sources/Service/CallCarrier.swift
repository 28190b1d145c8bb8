import Base
import Reactor
import Transport
import Wire

/// Brings calls to the router and takes their outcomes back: a connection of some protocol. All that the router knows
/// of it stands here, so that another protocol is another carrier, and the handlers do not notice.
///
/// A carrier is an actor on an event loop. It numbers its calls (`stream`), and ends them when the client does, when
/// their deadline passes and when it ends itself. Every call has exactly one outcome: `respond`, `fail` or `endStream`.
protocol CallCarrier: Actor {
    nonisolated var loop: EventLoop { get }
    /// Unlike that of any other carrier of the server: for the ids of requests that bring none.
    nonisolated var id: UInt64 { get }
    nonisolated var peerAddress: Text { get }
    /// What the router keeps for this carrier.
    var connectionContext: ConnectionContext { get }
    var isAuthenticated: Bool { get }
    var form: CallForm { get }
    /// The client showed a good credential: larger limits, longer patience.
    func authenticated()

    /// Ends a unary call well: `write` appends the response message. When `write` throws, the call is not answered yet.
    func respond(
        stream: UInt32, metadata: OutgoingMetadata, _ write: (inout ByteBuffer) throws -> Void) rethrows
    /// Ends a call badly.
    func fail(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata)
    /// Ends a stream well.
    func endStream(_ stream: UInt32)

    /// Runs the rest of a call as a task on the loop; see `Connection.run`.
    func run(
        stream: UInt32, kind: StreamKind, deadline: Instant, credential: AnyObject?, requestByteCount: Int,
        _ operation: @escaping @Sendable (isolated Self) async -> Void)
    /// A call that is begun next will ask for `pageTurn`, once.
    func awaitsPage()
    /// Returns when this call may make a page of a list; see `Connection.pageTurn`.
    func pageTurn(stream: UInt32) async throws
    /// Sends one message of a stream when the client has room for it. `write` appends the message; it is called once,
    /// when there is room, so that a stream that waits holds no message. `write` may find that there is none: then
    /// nothing is sent. `heldByteCount`: what the caller holds meanwhile. Throws `CancellationError`, and what `write`
    /// throws.
    func send<Made: Sendable>(
        stream: UInt32, heldByteCount: Int,
        _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made
    /// The client's next message, or nil when it sends no more. Throws `CancellationError`.
    func nextMessage(stream: UInt32) async throws -> [UInt8]?
}

/// Calls in native frames. `Connection` itself knows how each outcome is written.
extension Connection: CallCarrier {
    // Proof: the dispatcher of every connection is the router, and its `makeConnectionContext` makes nothing else.
    var connectionContext: ConnectionContext { unsafeDowncast(context, to: ConnectionContext.self) }
}
