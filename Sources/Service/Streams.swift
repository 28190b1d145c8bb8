import Base
import Messages
import Reactor

/// A stream of whatever carries it.
struct CallStream: Sendable {
    let carrier: any CallCarrier
    /// The carrier's number of the call.
    let number: UInt32
    let trace: CallTrace?
}

/// Sends the messages of a streaming handler. Waits while the client's window or the output is full.
struct ReplyStream<Response: Message>: Sendable {
    private let stream: CallStream

    init(_ stream: CallStream) { self.stream = stream }

    /// The loop that the handler runs on.
    var loop: EventLoop { stream.carrier.loop }

    /// Throws `CancellationError` when the client is gone or the call was cancelled.
    func send(_ message: Response) async throws { try await send(bytes: message.encoded()) }

    /// Sends a message that is encoded already, because a decoded message takes more memory while it waits.
    func send(bytes: [UInt8]) async throws { try await send(bytes, behindByteCount: 0) }

    /// Sends messages one after the other. They are encoded first, and count as memory of the connection while they
    /// wait, as the one does that is sent.
    func send(each messages: [Response]) async throws {
        let encoded = messages.map { $0.encoded() }
        var behindByteCount = encoded.reduce(0) { $0 + $1.count }
        for bytes in encoded {
            behindByteCount -= bytes.count
            try await send(bytes, behindByteCount: behindByteCount)
        }
    }

    private func send(_ bytes: [UInt8], behindByteCount: Int) async throws {
        try await stream.carrier.send(stream: stream.number, bytes, behindByteCount: behindByteCount)
        stream.trace?.add(sentByteCount: bytes.count)
    }
}

/// The client's further messages of a bidirectional stream, in order.
struct RequestStream<Request: Message>: Sendable {
    private let stream: CallStream
    private let limits: MessageLimits

    init(_ stream: CallStream, limits: MessageLimits) {
        self.stream = stream
        self.limits = limits
    }

    /// The next message, or nil when the client sends no more. Throws INVALID_ARGUMENT for what does not decode.
    func next() async throws -> Request? {
        guard let bytes = try await stream.carrier.nextMessage(stream: stream.number) else { return nil }
        stream.trace?.add(receivedByteCount: bytes.count)
        return try Request(decoding: bytes, limits: limits)
    }
}
