import Base
import Glibc
public import TLS

/// A blocking TLS client that sends what a test tells it to. Every wait ends after `timeoutSeconds`.
public final class TLSClient {
    public enum Outcome: Error, Equatable {
        /// The server ended the connection: in good order if it had said so before.
        case ended(inGoodOrder: Bool)
        case failed(String)
        case timedOut
    }

    private var descriptor: Int32
    public let session: TLSSession
    private let timeoutSeconds: Int32
    private var received: [UInt8] = []

    /// Connects, sends `preface` in clear text, and makes the handshake. With `isBytewise`, everything goes to the
    /// server byte by byte.
    public init(
        port: UInt16, _ configuration: ClientTLSConfiguration, name: String = "localhost", timeoutSeconds: Int32 = 20,
        isBytewise: Bool = false, preface: [UInt8] = []
    ) throws {
        let connected = try Self.connect(port)
        guard Glibc.send(connected, preface, preface.count, Int32(MSG_NOSIGNAL)) == preface.count else {
            throw Outcome.failed("send: \(errno)")
        }
        descriptor = isBytewise ? try ByteRelay.start(to: connected) : connected
        self.timeoutSeconds = timeoutSeconds
        session = try TLSSession(TLSContext(configuration), descriptor: descriptor, keyUpdateCountMax: 16)
        try session.verifyServer(named: name)
        while !session.isEstablished { try step(64 * 1024, isHandshake: true) }
    }

    deinit { close() }

    public static func connect(_ port: UInt16) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw Outcome.failed("connect: \(errno)") }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        return descriptor
    }

    /// Closes the connection without a TLS message.
    public func close() {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        descriptor = -1
    }

    /// Ends the sending side, with or without a TLS message that says so.
    public func closeForWriting(sayingSo: Bool) {
        if sayingSo { session.sayEnd() }
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    public func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            switch rest.withUnsafeBytes({ session.write($0) }) {
            case .bytes(let count): rest = rest.dropFirst(count)
            case .wantsWrite: try wait(POLLOUT)
            case .wantsRead: try wait(POLLIN)
            case .failed(let error): throw Outcome.failed("\(error)")
            case .ended, .truncated: throw Outcome.ended(inGoodOrder: false)
            }
        }
    }

    /// Sends bytes as they are, where the server expects a TLS record.
    public func sendInClear(_ bytes: [UInt8]) throws {
        guard Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw Outcome.failed("send: \(errno)")
        }
    }

    /// Sends `bytes`, the TLS message that nothing follows, and `after` in clear text, in one packet.
    public func sendAndEnd(_ bytes: [UInt8], andThen after: [UInt8]) throws {
        cork(true)
        defer { cork(false) }
        try send(bytes)
        session.sayEnd()
        guard Glibc.send(descriptor, after, after.count, Int32(MSG_NOSIGNAL)) == after.count else {
            throw Outcome.failed("send: \(errno)")
        }
    }

    /// The kernel keeps what is sent until it is let go (tcp(7)).
    private func cork(_ isOn: Bool) {
        var value: Int32 = isOn ? 1 : 0
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The next `count` bytes.
    public func receive(_ count: Int) throws -> [UInt8] {
        while received.count < count { try step(64 * 1024) }
        defer { received.removeFirst(count) }
        return Array(received[..<count])
    }

    /// The bytes that come next, at least one.
    public func receiveSome() throws -> [UInt8] {
        while received.isEmpty { try step(64 * 1024) }
        defer { received = [] }
        return received
    }

    /// All bytes until the server's end; throws unless the end is in good order.
    public func receiveAll(room: Int = 64 * 1024) throws -> [UInt8] {
        while true {
            do { try step(room) } catch Outcome.ended(inGoodOrder: true) { return received }
        }
    }

    /// Reads once, at most `room` bytes, and waits if there is nothing.
    public func step(_ room: Int, isHandshake: Bool = false) throws {
        var buffer = [UInt8](repeating: 0, count: room)
        switch buffer.withUnsafeMutableBytes({ session.read(into: $0.baseAddress!, byteCount: $0.count) }) {
        case .bytes(let count): received += buffer[..<count]
        // The server has nothing to say after the handshake.
        case .wantsRead: if !isHandshake || !session.isEstablished { try wait(POLLIN) }
        case .wantsWrite: try wait(POLLOUT)
        case .ended: throw Outcome.ended(inGoodOrder: true)
        case .truncated: throw Outcome.ended(inGoodOrder: false)
        case .failed(let error): throw Outcome.failed("\(error)")
        }
    }

    private func wait(_ events: Int32) throws {
        var polled = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        if poll(&polled, 1, timeoutSeconds * 1_000) == 0 { throw Outcome.timedOut }
    }
}

/// Carries bytes to a server one by one, and back as they come, until either side ends.
private enum ByteRelay {
    /// Starts the relay, and returns the client's end.
    static func start(to server: Int32) throws -> Int32 {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
            throw TLSClient.Outcome.failed("socketpair: \(errno)")
        }
        var one: Int32 = 1
        setsockopt(server, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let client = ends[1]
        _ = fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK)
        try OSThread.startDetached(name: "relay") {
            while forward(from: client, to: server, atOnce: 1), forward(from: server, to: client, atOnce: 65_536) {
                var polled = [
                    pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: server, events: Int16(POLLIN), revents: 0),
                ]
                poll(&polled, 2, 20_000)
            }
            Glibc.close(client)
            Glibc.close(server)
        }
        return ends[0]
    }

    /// Forwards the bytes that are there now. False at the end.
    private static func forward(from: Int32, to: Int32, atOnce: Int) -> Bool {
        var bytes = [UInt8](repeating: 0, count: atOnce)
        while true {
            let count = recv(from, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return count < 0 && errno == EAGAIN }
            var polled = pollfd(fd: to, events: Int16(POLLOUT), revents: 0)
            poll(&polled, 1, 20_000)
            guard Glibc.send(to, bytes, count, Int32(MSG_NOSIGNAL)) == count else { return false }
        }
    }
}
