import Base
import Messages
import Reactor
import Synchronization
import Transport

/// A stream on its carrier.
struct CallStream: Sendable {
    let carrier: any CallCarrier
    /// The carrier's number of the call.
    let number: UInt32
    let trace: CallTrace?
    /// The line in which it waits for a turn of the loop.
    let line: Text
}

/// Sends the messages of a streaming handler. Waits while the client's window or the output is full.
struct ReplyStream<Response: Message>: Sendable {
    private let stream: CallStream

    init(_ stream: CallStream) { self.stream = stream }

    /// The loop that the handler runs on.
    var loop: EventLoop { stream.carrier.loop }

    /// Sends a message that is at hand. It counts as memory of the connection while it waits.
    ///
    /// Throws `CancellationError` when the client is gone or the call was cancelled.
    func send(_ message: Response) async throws {
        try await send(heldByteCount: message.encodedByteCount, turn: nil) { buffer in
            message.encode(into: &buffer)
            return (true, ())
        }
    }

    /// Makes a message when the client has room for it, and sends it: a stream that waits holds no message, however
    /// many streams its connection has.
    ///
    /// `make` runs once, on the loop, and calls nothing of the connection. It returns the message, or nil if there is
    /// nothing to say, and a value with which the handler goes on. `inTurn`: it runs in a turn of the loop in which
    /// nothing else takes as long as a page. A stream that was woken (`ChangeHub`) and reads little, such as
    /// `StreamCall.wokenRowsMax` rows of a log, needs none: few are woken in a turn.
    func send<Made: Sendable>(
        inTurn: Bool, making make: @Sendable () throws -> (Response?, Made)
    ) async throws -> Made {
        try await send(heldByteCount: 0, turn: turn(inTurn)) { buffer in
            let (message, made) = try make()
            message?.encode(into: &buffer)
            return (message != nil, made)
        }
    }

    /// Makes messages when the client has room for one, and sends them one after the other. They are encoded first, and
    /// count as memory of the connection while they wait. `inTurn` as above.
    func send<Made: Sendable>(
        inTurn: Bool, makingEach make: @Sendable () throws -> ([Response], Made)
    ) async throws -> Made {
        let (messages, made) = try await send(heldByteCount: 0, turn: turn(inTurn)) { _ in
            let (messages, made) = try make()
            return (false, (messages.map { $0.encoded() }, made))
        }
        var heldByteCount = messages.reduce(0) { $0 + $1.count }
        for message in messages {
            try await send(heldByteCount: heldByteCount, turn: nil) { buffer in
                buffer.append(contentsOf: message)
                return (true, ())
            }
            heldByteCount -= message.count
        }
        return made
    }

    private func turn(_ isAlwaysTaken: Bool) -> MakingTurn {
        MakingTurn(line: stream.line, isAlwaysTaken: isAlwaysTaken)
    }

    private func send<Made: Sendable>(
        heldByteCount: Int, turn: MakingTurn?,
        _ write: @Sendable (inout ByteBuffer) throws -> (hasMessage: Bool, made: Made)
    ) async throws -> Made {
        let trace = stream.trace
        return try await stream.carrier.send(
            stream: stream.number, heldByteCount: heldByteCount, turn: turn
        ) { buffer in
            let start = buffer.readableByteCount
            let written = try write(&buffer)
            trace?.add(sentByteCount: buffer.readableByteCount - start)
            return written
        }
    }
}

/// The first message of a stream until its handler takes it, as it came: a stream may live for long, and its first
/// message is as large as any other.
final class FirstMessage: Sendable {
    private let bytes: Mutex<[UInt8]?>

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = Mutex([UInt8](bytes)) }

    func take() -> [UInt8]? { bytes.withLock { $0.take() } }
}

/// The client's messages of a bidirectional stream, in order.
struct RequestStream<Request: Message>: Sendable {
    private let stream: CallStream
    private let first: FirstMessage
    private let limits: MessageLimits

    init(_ stream: CallStream, _ first: FirstMessage, limits: MessageLimits) {
        self.stream = stream
        self.first = first
        self.limits = limits
    }

    /// Returns when the handler may do a piece of work that takes as long as a page, beside the other connections of
    /// its loop.
    func workTurn() async throws { try await stream.carrier.workTurn(line: stream.line) }

    /// The next message, or nil when the client sends no more. When its bytes have come, `mayDecode` is awaited before
    /// they are decoded. Throws INVALID_ARGUMENT for bytes that do not decode.
    func next(_ mayDecode: () async throws -> Void = {}) async throws -> Request? {
        guard let bytes = try await nextBytes() else { return nil }
        try await mayDecode()
        try await workTurn()
        return try Request(decoding: bytes, limits: limits)
    }

    private func nextBytes() async throws -> [UInt8]? {
        if let first = first.take() { return first }
        guard let bytes = try await stream.carrier.nextMessage(stream: stream.number) else { return nil }
        stream.trace?.add(receivedByteCount: bytes.count)
        return bytes
    }
}
