import Base
import Wire

/// Chooses the protocol of a connection by its first byte: 0x00 begins a native frame, `P` the preface of HTTP/2.
protocol ProtocolChoice: Sendable {
    /// Nil if no protocol of this server begins with this byte.
    func session(firstByte: UInt8, now: Instant) -> (any ProtocolSession)?

    /// What a connection that begins with this other byte is told before it is closed; may be empty.
    func refusal(firstByte: UInt8) -> [UInt8]
}

/// The protocol of a connection from which no byte has come. It has no calls.
final class OpeningSession: ProtocolSession, Sendable {
    /// The session has no state, so that all connections share one.
    static let shared = OpeningSession()

    var name: StaticString { "" }
    var hasSeenRequest: Bool { false }
    var partialSince: Instant? { nil }
    var request: RequestEnvelope { .none }

    func next(in input: inout ByteBuffer, output: inout OutputQueue, now: Instant, mayBegin: Bool) -> SessionEvent {
        .needMore
    }

    func authenticated(output: inout OutputQueue) {}
    func lostCredential(output: inout OutputQueue) {}
    func end(_ reason: CloseReason, output: inout OutputQueue) -> SessionEvent { .close }
    func beginDrain(output: inout OutputQueue) -> SessionEvent { .none }
    func finishDrain(output: inout OutputQueue) -> SessionEvent { .close }

    func wantsAnswer(stream: UInt32) -> Bool { false }
    func appendResponse(
        stream: UInt32, metadata: OutgoingMetadata, output: inout OutputQueue,
        write: (inout ByteBuffer) throws -> Void
    ) rethrows -> Bool { true }
    func appendFailure(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata, output: inout OutputQueue) {}
    func maySendMessage(stream: UInt32) -> Bool { false }
    func appendMessage(
        stream: UInt32, output: inout OutputQueue, write: (inout ByteBuffer) throws -> Bool
    ) rethrows -> Bool { true }
    func appendEnd(stream: UInt32, output: inout OutputQueue) {}
    func consumed(stream: UInt32, byteCount: Int, output: inout OutputQueue) {}
    func abandoned(stream: UInt32) {}
    func finished(stream: UInt32, output: inout OutputQueue) -> SessionEvent { .none }
}
