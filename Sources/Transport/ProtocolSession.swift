import Base
import Reactor
import Wire

/// A protocol on one connection: it finds the calls in the input, and writes their answers in its own form. The session
/// decides, and touches neither socket nor timer; the connection reads, writes and waits.
///
/// The native frames are `NativeSession`, gRPC over HTTP/2 is `GRPCSession`; the first byte of a connection tells which
/// (`ProtocolChoice`).
///
/// A call has a number, its `stream`. The session counts a call from `begin` until `finished`, however the call ends.
/// `output` is the connection's; what a session appends to it is sent at the end of the turn. One owner, on one loop.
protocol ProtocolSession: AnyObject {
    /// The protocol's name in logs; empty for a session that carries no calls.
    var name: StaticString { get }
    /// A request came, well formed or not.
    var hasSeenRequest: Bool { get }
    /// The time since which a part of a frame has waited for its rest. Nil between frames.
    var partialSince: Instant? { get }

    /// Takes the next frame out of `input`. The bytes in the event are valid until the next call, or until
    /// `releaseHandedOut`. Without `mayBegin`, no call and no message is handed out: they wait in the session, which
    /// reads on (`readsWhileFull`).
    func next(in input: inout ByteBuffer, output: inout OutputQueue, now: Instant, mayBegin: Bool) -> SessionEvent
    /// Whether that took longer than a look at the clock: a message was unpacked, or many frames were decoded.
    var wasLong: Bool { get }

    /// The request of the last `begin`, valid as long as that event. The request is not part of the event, so that it
    /// is not copied from function to function with the event.
    var request: RequestEnvelope { get }

    /// The connection has used the last event, and may not ask for the next one for some time: frees what only that
    /// event needs.
    func releaseHandedOut()

    /// The connection has been silent for some seconds: frees what is only kept for the next calls.
    func releaseIdleMemory()

    // MARK: What waits in the session itself

    /// The session goes on reading while the connection takes in no more calls, so that the client's window updates
    /// come through. It bounds by itself what the client can send meanwhile.
    var readsWhileFull: Bool { get }
    /// Calls or messages wait to be handed out.
    var hasWaitingCalls: Bool { get }
    /// The memory that the session holds, beside input and output.
    var heldByteCount: Int { get }
    /// The part of that memory that holds answers for which the client has no window.
    var pendingByteCount: Int { get }
    /// Whether whole answers wait for the client's windows. The messages of streams that are still open do not count: a
    /// client may take its time with a stream, and make other calls meanwhile.
    var holdsAnswers: Bool { get }
    /// The time since which the client keeps some of that memory waiting.
    var heldSince: Instant? { get }
    /// When `deadlinePassed` has to be called.
    var deadline: Instant? { get }
    func deadlinePassed(now: Instant, output: inout OutputQueue) -> SessionEvent

    // MARK: The connection

    /// The caller showed a valid credential: larger limits.
    func authenticated(output: inout OutputQueue)
    func lostCredential(output: inout OutputQueue)
    /// Ends the connection for a reason that the connection itself noticed.
    func end(_ reason: CloseReason, output: inout OutputQueue) -> SessionEvent
    /// Tells the client to go elsewhere; calls that it sent before it knew are still taken. An `echo` tells that they
    /// have come.
    func beginDrain(output: inout OutputQueue) -> SessionEvent
    /// Asks the peer whether it is there; `probeAnswered` is its answer. False: this peer cannot be asked.
    func appendProbe(output: inout OutputQueue) -> Bool
    /// Refuses new calls, and ends the connection after the last call.
    func finishDrain(output: inout OutputQueue) -> SessionEvent

    // MARK: A call

    /// False once the call was cancelled or failed: nothing may be sent for it any more.
    func wantsAnswer(stream: UInt32) -> Bool
    /// Answers a unary call; `write` appends the response message. False: the answer is too large for the client, and
    /// nothing was appended. If `write` throws, nothing was appended either.
    func appendResponse(
        stream: UInt32, metadata: OutgoingMetadata, output: inout OutputQueue,
        write: (inout ByteBuffer) throws -> Void
    ) rethrows -> Bool
    func appendFailure(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata, output: inout OutputQueue)
    /// Answers `SessionEvent.page`; nil: there is no such page.
    func appendPage(stream: UInt32, _ page: HTTPResponse?, output: inout OutputQueue)
    /// Whether a message of a stream may be sent now. False: wait for `windowOpened`.
    func maySendMessage(stream: UInt32) -> Bool
    /// `write` appends the message, or returns false if there is none. False: the message is too large for the client.
    /// Nothing was appended then, nor if `write` returned false or threw.
    func appendMessage(
        stream: UInt32, output: inout OutputQueue, write: (inout ByteBuffer) throws -> Bool
    ) rethrows -> Bool
    /// Ends a stream with status OK.
    func appendEnd(stream: UInt32, output: inout OutputQueue)
    /// The handler took a message of `byteCount` bytes: the client may send more.
    func consumed(stream: UInt32, byteCount: Int, output: inout OutputQueue)
    /// The client was told the end of a call whose work still runs.
    func abandoned(stream: UInt32)
    /// The work of a call has stopped, after its last frame was appended. Once for each `begin`.
    func finished(stream: UInt32, output: inout OutputQueue) -> SessionEvent
}

/// Defaults for a protocol whose frames are handed on as they come: nothing waits in its session.
extension ProtocolSession {
    var wasLong: Bool { false }
    func releaseHandedOut() {}
    func releaseIdleMemory() {}
    var readsWhileFull: Bool { false }
    var hasWaitingCalls: Bool { false }
    var heldByteCount: Int { 0 }
    var pendingByteCount: Int { 0 }
    var holdsAnswers: Bool { false }
    var heldSince: Instant? { nil }
    var deadline: Instant? { nil }
    func deadlinePassed(now: Instant, output: inout OutputQueue) -> SessionEvent { .none }
    func appendPage(stream: UInt32, _ page: HTTPResponse?, output: inout OutputQueue) {}
    func appendProbe(output: inout OutputQueue) -> Bool { false }
}

/// The next action of a connection. The session has already appended its own frames to the output.
enum SessionEvent {
    case none
    /// There is no whole frame left in the input.
    case needMore
    /// The client's HELLO had a credential.
    case authenticate(Text)
    /// A request that has not come whole brought a credential, which may allow a larger message.
    case present(Text)
    /// A request came: the session's `request`.
    case begin(stream: UInt32, kind: StreamKind)
    /// The client asks for a page (GET or HEAD) by its path, perhaps with a credential.
    case page(stream: UInt32, path: UnsafeRawBufferPointer, authorization: UnsafeRawBufferPointer?)
    case message(stream: UInt32, UnsafeRawBufferPointer, isLast: Bool)
    /// The client sends no more messages on this stream.
    case remoteClosed(stream: UInt32)
    case cancel(stream: UInt32)
    /// Messages may be sent on this stream again; 0: perhaps on any.
    case windowOpened(stream: UInt32)
    /// The peer answered the PING of `appendProbe`.
    case probeAnswered
    /// The answer to `beginDrain` came, after everything that the client had sent before.
    case echo
    /// Take in nothing more, and close when the output is sent.
    case close
}
