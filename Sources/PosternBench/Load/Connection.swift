import Base
import Glibc
import Messages
import Wire

/// Where the server is: `host:port`, the host an address or a name, IPv6 in brackets.
struct ServerAddress: Sendable, Equatable, CustomStringConvertible {
    let host: String
    let port: UInt16

    init(parsing text: String) throws(UsageError) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            throw UsageError("--server: \"\(text)\" must be host:port")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        self.host = String(host)
        self.port = port
    }

    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// A connected socket, without Nagle's delay. `source` is the numeric IPv4 address it comes from; nil leaves that
    /// to the system.
    func connect(from source: String? = nil) throws(BenchError) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        guard code == 0, let address = found?.pointee else {
            throw BenchError(.notReady, "\(self): \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(
            address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), address.ai_protocol)
        guard descriptor >= 0 else { throw .system(.notReady, "socket") }
        if let source, !Self.bind(descriptor, to: source) {
            let error = BenchError.system(.notReady, "bind to \(source)")
            close(descriptor)
            throw error
        }
        guard Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 else {
            let error = BenchError.system(.notReady, "connect to \(self)")
            close(descriptor)
            throw error
        }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return descriptor
    }

    private static func bind(_ descriptor: Int32, to source: String) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        guard inet_pton(AF_INET, source, &address.sin_addr) == 1 else { return false }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}

/// A connection that has said HELLO with its API key: blocking until `becomeNonBlocking`. One owner, not thread-safe.
final class Connection {
    private static let readByteCount = 64 * 1024
    /// How long a blocking read waits for a server that says nothing.
    private static let readTimeoutSeconds = 30

    /// What a stream may bring before it needs credit: so much that nobody here has to give any. With the 64 KiB that a
    /// client gets who says nothing, a stream fell silent for ever after a snapshot of a thousand revocations.
    private static let windowByteCount = UInt32(Int32.max)

    let descriptor: Int32
    /// The server's HELLO.
    private(set) var server = WireHello()
    var input = ByteBuffer()
    var output = ByteBuffer()
    private var nextStream: UInt32 = 1

    /// Connects, and waits for the server's HELLO.
    init(to address: ServerAddress, authorization: Text, from source: String? = nil) throws(BenchError) {
        descriptor = try address.connect(from: source)
        var timeout = timeval(tv_sec: Self.readTimeoutSeconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        output.appendHello(
            WireHello(
                protocolVersion: 1, frameBytesMax: UInt32(FrameHeader.payloadByteCountMax),
                initialWindow: Self.windowByteCount, software: "postern-bench", authorization: authorization))
        try flush()
        var hello: WireHello?
        try readFrame { header, payload in
            if header.type == .hello { hello = try? WireHello(decoding: payload) }
        }
        guard let hello else {
            throw BenchError(.notReady, "\(address) did not answer HELLO with one: no Postern server?")
        }
        server = hello
    }

    deinit { close(descriptor) }

    /// Nil when the ids are used up, after 2^30 requests.
    func takeStream() -> UInt32? {
        guard nextStream <= StreamID.max else { return nil }
        defer { nextStream += 2 }
        return nextStream
    }

    /// Sends all of `output`.
    func flush() throws(BenchError) {
        while !output.isEmpty {
            guard case .bytes(let count) = send(), count > 0 else { throw .system(.failed, "send") }
        }
    }

    /// Waits for a frame and hands it out; it is gone when `body` returns.
    func readFrame(_ body: (FrameHeader, UnsafeRawBufferPointer) -> Void) throws(BenchError) {
        while true {
            var taken = false
            takeFrames(atMost: 1) { header, payload in
                body(header, payload)
                taken = true
            }
            if taken { return }
            guard case .bytes(let count) = receive(), count > 0 else {
                throw BenchError(
                    .failed, "the server closed the connection, or said nothing for \(Self.readTimeoutSeconds) s")
            }
        }
    }
}

/// What a read or write came to.
enum Transfer {
    /// 0 from a read is the peer's end.
    case bytes(Int)
    case wouldBlock
    case failed
}

extension Connection {
    func becomeNonBlocking() {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// One read into `input`.
    func receive() -> Transfer {
        while true {
            let count = recv(descriptor, input.reserve(Self.readByteCount), Self.readByteCount, 0)
            if count >= 0 {
                input.commit(count)
                return .bytes(count)
            }
            if errno == EAGAIN { return .wouldBlock }
            if errno != EINTR { return .failed }
        }
    }

    /// One write from `output`, which must not be empty.
    func send() -> Transfer {
        while true {
            let bytes = output.readable
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count >= 0 {
                output.consume(count)
                return .bytes(count)
            }
            if errno == EAGAIN { return .wouldBlock }
            if errno != EINTR { return .failed }
        }
    }

    /// Hands out the whole frames in `input` and drops them.
    func takeFrames(atMost most: Int = .max, _ body: (FrameHeader, UnsafeRawBufferPointer) -> Void) {
        let bytes = input.readable
        var offset = 0
        var count = 0
        while count < most, let header = FrameHeader.read(UnsafeRawBufferPointer(rebasing: bytes[offset...])) {
            let start = offset + FrameHeader.byteCount
            let end = start + Int(header.payloadByteCount)
            guard end <= bytes.count else { break }
            body(header, UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            offset = end
            count += 1
        }
        input.consume(offset)
    }
}
