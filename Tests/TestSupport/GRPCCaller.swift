public import Base
public import HTTP2
import Messages
public import Wire

/// A blocking gRPC client for one call at a time: tests make by gRPC the calls that otherwise go by native frames.
public final class GRPCCaller: HTTP2Events {
    /// The answer that came for a call.
    public struct Answer: Equatable {
        public var fields: [String: [UInt8]] = [:]
        public var body: [UInt8] = []
        var isClosed = false

        public func text(_ name: String) -> String? { fields[name].map { String(decoding: $0, as: UTF8.self) } }

        /// The messages in the body, without their prefixes.
        public var messages: [[UInt8]] {
            var found: [[UInt8]] = []
            var rest = body[...]
            while rest.count >= 5 {
                let count = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
                found.append(Array(rest.dropFirst(5).prefix(count)))
                rest = rest.dropFirst(5 + count)
            }
            return found
        }

        /// The failure in the trailers; nil for OK.
        public var failure: Failure? {
            guard let code = text("grpc-status").flatMap({ Int32($0) }), code != 0 else { return nil }
            let digits = (fields["grpc-status-details-bin"] ?? [])
            let padded = digits + Array(repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
            guard let details = Base64.standard.decode(padded), let status = try? GoogleStatus(decoding: details) else {
                return Failure(received: StatusCode(rawValue: code) ?? .unknown, reason: "", "")
            }
            return RawClient.failure(status)
        }
    }

    private let client: RawClient
    private let engine = HTTP2Engine(.client)
    private var answers: [UInt32: Answer] = [:]
    private var bodies: [UInt32: [UInt8]] = [:]
    private var headersOf: UInt32 = 0

    public init(port: UInt16) throws {
        client = try RawClient(port: port)
        engine.events = self
        engine.submit(HTTP2Settings(streamsMax: 0, initialWindow: 1 << 24, headerListByteCountMax: 64 * 1024))
        engine.setConnectionWindow(1 << 26)
    }

    /// Makes a call that sends these messages and no more, and reads until its end. With `untilMessage` it reads
    /// until the first message only, which then is the answer of a stream that goes on. `firstByte`: of each message,
    /// 1 if it is compressed.
    public func call(
        _ fullName: String, _ messages: [[UInt8]], metadata: [OutgoingMetadata.Entry] = [], untilMessage: Bool = false,
        firstByte: UInt8 = 0
    ) throws -> Answer {
        let path = [UInt8](("/" + fullName).utf8)
        engine.fields.add(":method", "POST")
        engine.fields.add(":scheme", "http")
        path.withUnsafeBytes { engine.fields.add(":path", unique: $0) }
        engine.fields.add(":authority", "localhost")
        engine.fields.add("te", "trailers")
        engine.fields.add("content-type", "application/grpc")
        for entry in metadata { add(entry) }
        let stream = engine.request(hasBody: true)
        bodies[stream] = messages.flatMap { message in
            [firstByte] + withUnsafeBytes(of: UInt32(message.count).bigEndian) { [UInt8]($0) } + message
        }
        answers[stream] = Answer()
        while answers[stream]?.isClosed == false {
            try flush()
            if untilMessage, let answer = answers[stream], !answer.messages.isEmpty { break }
            let bytes = try client.receive(65_536)
            if bytes.isEmpty { throw RawClient.RawError.closed }
            guard bytes.withUnsafeBytes({ engine.receive($0) }) else { throw RawClient.RawError.closed }
        }
        return answers.removeValue(forKey: stream) ?? Answer()
    }

    /// Makes one unary call, and throws the `Failure` that it answers.
    func call<Response: Message>(
        _ fullName: String, _ message: some Message, metadata: [OutgoingMetadata.Entry]
    ) throws -> Response {
        let answer = try call(fullName, [message.encoded()], metadata: metadata)
        if let failure = answer.failure { throw failure }
        guard let bytes = answer.messages.first else { throw RawClient.RawError.closed }
        return try Response(decoding: bytes)
    }

    private func add(_ entry: OutgoingMetadata.Entry) {
        entry.value.bytes.withUnsafeBytes { value in
            switch entry.key.string {
            case "authorization": engine.fields.add("authorization", unique: value)
            case "x-request-id": engine.fields.add("x-request-id", unique: value)
            case "grpc-encoding": engine.fields.add("grpc-encoding", unique: value)
            case "idempotency-key": engine.fields.add("idempotency-key", unique: value)
            case "traceparent": engine.fields.add("traceparent", unique: value)
            case "x-postern-position": engine.fields.add("x-postern-position", unique: value)
            case "x-postern-consistency": engine.fields.add("x-postern-consistency", unique: value)
            default: engine.fields.add("other", unique: value)
            }
        }
    }

    private func flush() throws {
        var bytes: [UInt8] = []
        engine.send { bytes += $0 }
        if !bytes.isEmpty { try client.send(bytes) }
    }

    // MARK: Events

    public func headersBegan(stream: UInt32, isFirst: Bool) { headersOf = stream }

    public func header(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        answers[headersOf]?.fields[String(decoding: name, as: UTF8.self)] = [UInt8](value)
        return true
    }

    public func headersEnded(stream: UInt32, isLast: Bool) {}

    public func data(_ bytes: UnsafeRawBufferPointer, stream: UInt32) {
        answers[stream]?.body += bytes
        engine.consume(bytes.count, stream: stream)
        engine.consumeOfConnection(bytes.count)
    }

    public func remoteEnded(stream: UInt32) {}
    public func reset(stream: UInt32) {}
    public func closed(stream: UInt32) { answers[stream]?.isClosed = true }
    public func windowOpened(stream: UInt32) {}
    public func pingAcknowledged(_ opaque: UInt64) {}
    public func peerLeft() {}
    public func violated() {}
    public func refused() {}

    public func nextBytes(stream: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2Body {
        let body = bodies[stream] ?? []
        let count = min(body.count, buffer.count)
        buffer.copyBytes(from: body[..<count])
        bodies[stream] = Array(body[count...])
        return count == body.count ? .last(count) : .bytes(count)
    }

    public func addTrailers(stream: UInt32, to fields: HTTP2Fields) {}
}
