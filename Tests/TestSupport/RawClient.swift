public import Base
import Glibc
public import Messages
public import Wire

/// A blocking client that sends what a test tells it to, right or wrong, and reads frames one by one.
///
/// Speaks stock ttrpc until `hello` is called. Every read fails after `timeoutSeconds`, so that a test cannot hang.
public final class RawClient {
    /// Anything that went wrong with the socket; `closed`: the server ended the connection.
    public enum RawError: Error, Equatable {
        case closed
        case timedOut
        case system(Int32)
    }

    public struct Frame {
        public let header: FrameHeader
        public let payload: [UInt8]

        public init(header: FrameHeader, payload: [UInt8]) {
            self.header = header
            self.payload = payload
        }
    }

    public var apiKey: Secret?
    private var descriptor: Int32
    private var lastStream: UInt32 = 0
    private var received: [UInt8] = []
    /// The port to which `call` goes by gRPC, on a connection of its own; nil: `call` goes by native frames. After
    /// HELLO it is nil, because the test then asks for native frames.
    private var portForGRPC: UInt16?
    /// Makes the calls of `call`; opened by the first one.
    private var byGRPC: GRPCCaller?

    /// Whether `POSTERN_TEST_PROTOCOL` is "grpc" (`tools/test --grpc`).
    public static let callsByGRPC: Bool = {
        guard let wish = getenv("POSTERN_TEST_PROTOCOL") else { return false }
        precondition(String(cString: wish) == "grpc", "POSTERN_TEST_PROTOCOL is \"grpc\" or not set")
        return true
    }()

    /// A client to make the calls of a test with, by native frames or, if it was asked for, by gRPC.
    public convenience init(callingOn port: UInt16) throws {
        try self.init(port: port)
        if Self.callsByGRPC { portForGRPC = port }
    }

    /// `receiveByteCount`: how much the kernel receives for a client that does not read; the kernel's default when nil.
    public init(port: UInt16, timeoutSeconds: Int = 20, receiveByteCount: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveByteCount {
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVBUF, &receiveByteCount, socklen_t(MemoryLayout<Int32>.size))
        }
        var timeout = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if code != 0 { throw RawError.system(errno) }
    }

    /// A client on one end of a socket pair, and the other end, non-blocking, for a server to adopt: no network.
    public static func pair(timeoutSeconds: Int = 20) throws -> (client: RawClient, server: Int32) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw RawError.system(errno) }
        var timeout = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        _ = fcntl(ends[1], F_SETFL, fcntl(ends[1], F_GETFL) | O_NONBLOCK)
        return (RawClient(owning: ends[0]), ends[1])
    }

    /// A client that only makes the bytes of requests.
    public static func unconnected() -> RawClient { RawClient(owning: -1) }

    private init(owning descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    // MARK: Bytes

    public func close() {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        descriptor = -1
    }

    /// Sends no more; what the server still sends can be read.
    public func closeForWriting() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Closes with a reset instead of a farewell (SO_LINGER 0).
    public func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    public func send(_ bytes: [UInt8]) throws {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
            }
            if count < 0 { throw errno == EAGAIN ? RawError.timedOut : RawError.system(errno) }
            offset += count
        }
    }

    /// Sends what the kernel takes at once, in a few attempts; the rest would need a server that reads.
    public func sendWhatIsTaken(_ bytes: [UInt8]) throws {
        var offset = 0
        for _ in 0..<20 where offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if count < 0 {
                guard errno == EAGAIN else { throw RawError.system(errno) }
                usleep(2_000)
            } else {
                offset += count
            }
        }
    }

    /// The next frame; throws `closed` when the server closed the connection, in order or by reset.
    public func readFrame() throws -> Frame {
        while true {
            let header = received.withUnsafeBytes { FrameHeader.read($0) }
            if let header, received.count >= FrameHeader.byteCount + Int(header.payloadByteCount) {
                let end = FrameHeader.byteCount + Int(header.payloadByteCount)
                let payload = Array(received[FrameHeader.byteCount..<end])
                received.removeFirst(end)
                return Frame(header: header, payload: payload)
            }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count == 0 || (count < 0 && errno == ECONNRESET) { throw RawError.closed }
            if count < 0 { throw errno == EAGAIN ? RawError.timedOut : RawError.system(errno) }
            received += chunk[..<count]
        }
    }

    /// Up to `count` of the bytes that come next; none if the server closed in good order.
    public func receive(_ count: Int) throws -> [UInt8] {
        var chunk = [UInt8](repeating: 0, count: count)
        let received = recv(descriptor, &chunk, count, 0)
        if received < 0 { throw errno == ECONNRESET ? RawError.closed : RawError.system(errno) }
        return Array(chunk[..<received])
    }

    /// Reads until the server closes; returns the frames that came before.
    public func readUntilClosed() throws -> [Frame] {
        var frames: [Frame] = []
        while true {
            do { frames.append(try readFrame()) } catch RawError.closed { return frames }
        }
    }

    // MARK: Frames and calls

    public func nextStream() -> UInt32 {
        lastStream = lastStream == 0 ? 1 : lastStream + 2
        return lastStream
    }

    /// A REQUEST frame's bytes, as this client would send them.
    public func request(
        _ fullName: String, _ message: some Message, stream: UInt32, kind: StreamKind = .unary,
        metadata: [OutgoingMetadata.Entry] = [], timeoutNanoseconds: Int64 = 0
    ) -> [UInt8] {
        let parts = fullName.split(separator: "/")
        let entries = credential(and: metadata)
        var buffer = ByteBuffer()
        let fits = buffer.appendRequest(
            stream: stream, kind: kind, service: Text(String(parts[0])), method: Text(String(parts[1])),
            timeoutNanoseconds: timeoutNanoseconds, metadata: OutgoingMetadata(others: entries)
        ) { message.encode(into: &$0) }
        precondition(fits, "the request does not fit a frame")
        return buffer.copyBytes()
    }

    /// The metadata, with the client's key unless it names another one.
    private func credential(and metadata: [OutgoingMetadata.Entry]) -> [OutgoingMetadata.Entry] {
        guard let apiKey, !metadata.contains(where: { $0.key == "authorization" }) else { return metadata }
        let key = apiKey.bearer
        return metadata + [OutgoingMetadata.Entry(key: "authorization", value: key)]
    }

    /// Opens the connection with HELLO and returns the server's HELLO.
    public func hello(_ hello: WireHello = WireHello(protocolVersion: 1, software: "raw")) throws -> WireHello {
        var buffer = ByteBuffer()
        buffer.appendHello(hello)
        try send(buffer.copyBytes())
        let frame = try readFrame()
        precondition(frame.header.type == .hello, "no HELLO came back")
        portForGRPC = nil
        return try WireHello(decoding: frame.payload)
    }

    /// Makes one unary call. `fullName` is for example `postern.v1.Users/Get`. Throws the `Failure` that the call
    /// answers.
    public func call<Response: Message>(
        _ fullName: String, _ message: some Message, returning: Response.Type = Response.self,
        metadata: [OutgoingMetadata.Entry] = []
    ) throws -> Response {
        if let port = portForGRPC {
            let caller = try byGRPC ?? GRPCCaller(port: port)
            byGRPC = caller
            return try caller.call(fullName, message, metadata: credential(and: metadata))
        }
        let stream = nextStream()
        try send(request(fullName, message, stream: stream, metadata: metadata))
        let frame = try readFrame()
        precondition(frame.header.stream == stream, "an answer for stream \(frame.header.stream), not \(stream)")
        return try Self.response(frame)
    }

    /// The response in a RESPONSE frame, or the failure it carries.
    public static func response<Response: Message>(
        _ frame: Frame, returning: Response.Type = Response.self
    ) throws -> Response {
        let envelope = try WireResponse(decoding: frame.payload)
        if let status = envelope.status, status.code != 0 { throw failure(status) }
        return try Response(decoding: envelope.payload)
    }

    /// The `Failure` that a google.rpc.Status stands for.
    public static func failure(_ status: GoogleStatus) -> Failure {
        var failure = Failure(StatusCode(rawValue: status.code) ?? .unknown, "", status.message.string)
        for detail in status.details {
            switch detail.typeURL {
            case "type.googleapis.com/google.rpc.ErrorInfo":
                guard let info = try? GoogleErrorInfo(decoding: detail.value) else { continue }
                failure.reason = info.reason.string
                failure.metadata = info.metadata.map { Failure.Entry($0.key.string, $0.value.string) }
            case "type.googleapis.com/google.rpc.RetryInfo":
                guard let info = try? GoogleRetryInfo(decoding: detail.value), let delay = info.retryDelay else {
                    continue
                }
                failure.retryAfter = .seconds(delay.seconds) + .nanoseconds(Int64(delay.nanos))
            case "type.googleapis.com/google.rpc.BadRequest":
                guard let info = try? GoogleBadRequest(decoding: detail.value) else { continue }
                failure.violations = info.fieldViolations.map {
                    Failure.FieldViolation(field: $0.field.string, description: $0.description.string)
                }
            default: break
            }
        }
        return failure
    }
}
