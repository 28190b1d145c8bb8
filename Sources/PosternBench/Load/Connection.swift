import Base
import Glibc
import Messages
import TLS
import Wire

/// Where the server is: `host:port`, the host an address or a name, IPv6 in brackets.
struct ServerAddress: Sendable, CustomStringConvertible {
    let host: String
    let port: UInt16
    /// For TLS, with the certificates that the server's must be from; nil: plain text.
    var tls: TLSContext?

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

/// A connection that has said HELLO with its API key. One owner, not thread-safe.
///
/// `receive` and `send` do not block; `readFrame` and `flush` do.
final class Connection: LoadLink {
    private static let readByteCount = 64 * 1024
    /// How long a connection waits for a server that says or takes nothing.
    private static let timeoutMilliseconds: Int32 = 30_000
    /// A server that changes its keys more often is none of ours.
    private static let keyUpdateCountMax = 16

    /// What a stream may bring before it needs credit: so much that nobody here has to give any. With the 64 KiB that a
    /// client gets who says nothing, a stream fell silent for ever after a snapshot of a thousand revocations.
    private static let windowByteCount = UInt32(Int32.max)

    let descriptor: Int32
    /// Nil: plain text.
    private let tls: TLSSession?
    /// The server's HELLO.
    private(set) var server = WireHello()
    var input = ByteBuffer()
    var output = ByteBuffer()
    private var nextStream: UInt32 = 1

    /// Connects, and waits for the server's HELLO.
    init(to address: ServerAddress, authorization: Text, from source: String? = nil) throws(BenchError) {
        let descriptor = try address.connect(from: source)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        self.descriptor = descriptor
        do throws(TLSError) {
            tls = try address.tls.map { context throws(TLSError) in
                let session = try TLSSession(
                    context, descriptor: descriptor, keyUpdateCountMax: Self.keyUpdateCountMax)
                try session.verifyServer(named: address.host)
                return session
            }
        } catch {
            throw BenchError(.notReady, "\(address): \(error)")
        }
        try shakeHands(with: address)
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

    private func shakeHands(with address: ServerAddress) throws(BenchError) {
        guard let tls else { return }
        while !tls.isEstablished {
            switch tls.read(into: input.reserve(Self.readByteCount), byteCount: Self.readByteCount) {
            case .bytes(let count): input.commit(count)
            case .wantsRead: if !tls.isEstablished { try wait(for: POLLIN) }
            case .wantsWrite: try wait(for: POLLOUT)
            case .ended, .truncated: throw BenchError(.notReady, "\(address) ended the handshake")
            case .failed(let error):
                throw BenchError(.notReady, "\(address): \(tls.refusedCertificate ?? "\(error)")")
            }
        }
    }

    private func wait(for events: Int32) throws(BenchError) {
        var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
        while true {
            let count = poll(&entry, 1, Self.timeoutMilliseconds)
            if count > 0 { return }
            guard count < 0, errno == EINTR else {
                throw BenchError(.failed, "the server did nothing for \(Self.timeoutMilliseconds / 1_000) s")
            }
        }
    }

    /// Nil when the ids are used up, after 2^30 requests.
    func takeStream() -> UInt32? {
        guard nextStream <= StreamID.max else { return nil }
        defer { nextStream += 2 }
        return nextStream
    }

    /// Sends all of `output`.
    func flush() throws(BenchError) {
        while !output.isEmpty {
            switch send() {
            case .bytes: continue
            case .wouldBlock: try wait(for: POLLOUT)
            case .failed: throw .system(.failed, "send")
            }
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
            switch receive() {
            case .bytes(0), .failed: throw BenchError(.failed, "the server closed the connection")
            case .bytes: continue
            case .wouldBlock: try wait(for: POLLIN)
            }
        }
    }
}

extension Connection {
    /// One read into `input`.
    func receive() -> Transfer {
        if let tls { return receive(by: tls) }
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

    /// Reads until the session holds nothing that the socket would not announce.
    private func receive(by tls: TLSSession) -> Transfer {
        var received = 0
        repeat {
            switch tls.read(into: input.reserve(Self.readByteCount), byteCount: Self.readByteCount) {
            case .bytes(let count):
                input.commit(count)
                received += count
            // The load does not wait to send what a change of keys asks for: there is output again soon.
            case .wantsRead, .wantsWrite: return received > 0 ? .bytes(received) : .wouldBlock
            case .ended, .truncated: return .bytes(received)
            case .failed: return .failed
            }
        } while tls.hasPendingInput
        return .bytes(received)
    }

    /// One write from `output`, which must not be empty.
    func send() -> Transfer {
        if let tls {
            switch tls.write(output.readable) {
            case .bytes(let count):
                output.consume(count)
                return .bytes(count)
            case .wantsRead, .wantsWrite: return .wouldBlock
            case .ended, .truncated, .failed: return .failed
            }
        }
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
}
