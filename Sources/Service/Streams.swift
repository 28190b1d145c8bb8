import Base
import Messages
import Reactor
import Transport

/// Where a streaming handler sends its messages; waits while the client's window or the output is full.
struct ReplyStream<Response: Message>: Sendable {
    fileprivate let connection: Connection
    fileprivate let stream: UInt32

    init(connection: Connection, stream: UInt32) {
        self.connection = connection
        self.stream = stream
    }

    /// Where the handler runs.
    var loop: EventLoop { connection.loop }

    /// Throws `CancellationError` when the client is gone or the call was cancelled.
    func send(_ message: Response) async throws { try await send(bytes: message.encoded()) }

    /// The same for who encoded it already, because a message takes more room while it waits.
    func send(bytes: [UInt8]) async throws { try await connection.send(stream: stream, bytes) }
}

/// The client's further messages of a bidirectional stream, in order.
struct RequestStream<Request: Message>: Sendable {
    fileprivate let connection: Connection
    fileprivate let stream: UInt32
    fileprivate let limits: Limits

    init(connection: Connection, stream: UInt32, limits: Limits) {
        self.connection = connection
        self.stream = stream
        self.limits = limits
    }

    /// The next message, or nil when the client sends no more. Throws INVALID_ARGUMENT for what does not decode.
    func next() async throws -> Request? {
        guard let bytes = try await connection.nextMessage(stream: stream) else { return nil }
        return try Request(decoding: bytes, limits: limits)
    }
}
