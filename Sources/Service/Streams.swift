import Base
import Messages
import Reactor

/// A stream on its carrier.
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

    /// Returns when the handler may do a piece of work that takes as long as a page, beside the other connections of
    /// its loop; for a handler that has more to send than one message. Throws `CancellationError`.
    func workTurn() async throws { try await stream.carrier.workTurn() }

    /// Sends a message that is at hand. It counts as memory of the connection while it waits.
    ///
    /// Throws `CancellationError` when the client is gone or the call was cancelled.
    func send(_ message: Response) async throws {
        try await send(heldByteCount: message.encodedByteCount) { buffer in
            message.encode(into: &buffer)
            return (true, ())
        }
    }

    /// Makes a message when the client has room for it, and sends it: a stream that waits holds no message, however
    /// many streams its connection has.
    ///
    /// `make` runs once, on the loop, and calls nothing of the connection. It returns the message, or nil if there is
    /// nothing to say, and a value with which the handler goes on.
    func send<Made: Sendable>(making make: @Sendable () throws -> (Response?, Made)) async throws -> Made {
        try await send(heldByteCount: 0) { buffer in
            let (message, made) = try make()
            message?.encode(into: &buffer)
            return (message != nil, made)
        }
    }

    /// Makes messages when the client has room for one, and sends them one after the other. They are encoded first, and
    /// count as memory of the connection while they wait.
    func send<Made: Sendable>(makingEach make: @Sendable () throws -> ([Response], Made)) async throws -> Made {
        let (messages, made) = try await send(heldByteCount: 0) { _ in
            let (messages, made) = try make()
            return (false, (messages.map { $0.encoded() }, made))
        }
        var heldByteCount = messages.reduce(0) { $0 + $1.count }
        for message in messages {
            try await send(heldByteCount: heldByteCount) { buffer in
                buffer.append(contentsOf: message)
                return (true, ())
            }
            heldByteCount -= message.count
        }
        return made
    }

    private func send<Made: Sendable>(
        heldByteCount: Int, _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made {
        let trace = stream.trace
        return try await stream.carrier.send(stream: stream.number, heldByteCount: heldByteCount) { buffer in
            let start = buffer.readableByteCount
            let written = try write(&buffer)
            trace?.add(sentByteCount: buffer.readableByteCount - start)
            return written
        }
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

    /// Returns when the handler may do a piece of work that takes as long as a page, beside the other connections of
    /// its loop.
    func workTurn() async throws { try await stream.carrier.workTurn() }

    /// The next message, or nil when the client sends no more. Throws INVALID_ARGUMENT for bytes that do not decode.
    func next() async throws -> Request? {
        guard let bytes = try await stream.carrier.nextMessage(stream: stream.number) else { return nil }
        stream.trace?.add(receivedByteCount: bytes.count)
        try await workTurn()
        return try Request(decoding: bytes, limits: limits)
    }
}
