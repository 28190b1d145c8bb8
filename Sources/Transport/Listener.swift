public import Base
import Glibc
public import Reactor

/// Why a port could not be opened.
public struct ListenError: Error, CustomStringConvertible {
    public let address: SocketAddress
    public let code: Int32

    public var description: String {
        let hint = code == EADDRINUSE ? "; another program uses it: stop that one, or choose another address" : ""
        return "cannot listen on \(address): \(String(cString: strerror(code)))\(hint)"
    }
}

/// Accepts connections on one loop and hands each to the least loaded loop.
///
/// When the process is out of file descriptors, the one in reserve is given up for a moment to accept and close the
/// waiting peer (`DescriptorReserve`). Without even that one the listener pauses for a second.
public final class Listener: SocketEvents, @unchecked Sendable {
    // Unchecked: everything mutable is touched on `loop` only; `start` and `close` go there by `loop.run`.

    public let address: SocketAddress
    private let descriptor: Int32
    private let loop: EventLoop
    private let mayAccept: @Sendable (Listener) -> Bool
    private let accepted: @Sendable (Int32) -> Void
    private let log: Log
    private var watch: FileWatch?
    private var reserve: DescriptorReserve
    private var pause: Timer?
    private var warnedAt: Instant?
    private var isClosed = false

    /// A process without descriptors says so once in this time, and a listener without a reserve tries again after it.
    private static let acceptPause = Duration.seconds(1)

    /// Binds and listens; `accepted` gets each connected descriptor, non-blocking, on the loop's thread. Once
    /// `mayAccept` has said no, connections wait in the kernel's queue, and it is not asked again before `resume()`.
    public init(
        _ wanted: SocketAddress, on loop: EventLoop, log: Log, mayAccept: @escaping @Sendable (Listener) -> Bool,
        accepted: @escaping @Sendable (Int32) -> Void
    ) throws(ListenError) {
        let family = wanted.host.contains(":") ? AF_INET6 : AF_INET
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw ListenError(address: wanted, code: errno) }
        Socket.makeNonBlocking(descriptor)
        Socket.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
        let code =
            wanted.withSockaddr { address, length in bind(descriptor, address, length) == 0 ? 0 : errno } ?? EINVAL
        guard code == 0, listen(descriptor, 1_024) == 0 else {
            let reason = code == 0 ? errno : code
            _ = Glibc.close(descriptor)
            throw ListenError(address: wanted, code: reason)
        }
        self.descriptor = descriptor
        self.address = SocketAddress(host: wanted.host, port: Self.boundPort(descriptor)) ?? wanted
        self.loop = loop
        self.log = log
        self.mayAccept = mayAccept
        self.accepted = accepted
        self.reserve = DescriptorReserve()
    }

    public func start() {
        loop.run { [self] in
            guard !isClosed else { return }
            watch = FileWatch(on: loop, fileDescriptor: descriptor, handler: self)
            watch?.setReading(true)
        }
    }

    /// Accepts again after `mayAccept` said no. Any thread.
    public func resume() { loop.run { [self] in watch?.setReading(true) } }

    /// Accepts nothing from here on; what was accepted stays.
    public func close() {
        loop.run { [self] in
            guard !isClosed else { return }
            isClosed = true
            watch?.cancel()
            watch = nil
            pause?.cancel()
            _ = Glibc.close(descriptor)
            reserve.giveUp()
        }
    }

    public func socketIsReadable() {
        // A bound per turn, so that a flood of connections does not keep the others waiting.
        for _ in 0..<64 {
            guard mayAccept(self) else {
                watch?.setReading(false)
                return
            }
            let connection = accept(descriptor, nil, nil)
            if connection >= 0 {
                Socket.configure(connection)
                accepted(connection)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE:
                shedOne()
                return
            default: return
            }
        }
    }

    public func socketIsWritable() {}

    private func shedOne() {
        let now = Instant.now
        if warnedAt.map({ now.nanoseconds(since: $0) >= Self.acceptPause.microseconds * 1_000 }) ?? true {
            warnedAt = now
            log.warning("out of file descriptors, connections are closed at once", [:])
        }
        let isShed = reserve.use { [descriptor] in
            let connection = accept(descriptor, nil, nil)
            if connection >= 0 { _ = Glibc.close(connection) }
        }
        guard !isShed else { return }
        watch?.setReading(false)
        if pause == nil { pause = Timer(on: loop) { [weak self] in self?.watch?.setReading(true) } }
        pause?.arm(after: Self.acceptPause)
    }

    private static func boundPort(_ descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getsockname(descriptor, address, &length) == 0 else { return 0 }
                // sin_port and sin6_port lie at the same place (POSIX leaves it open, Linux does not).
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt16(bigEndian: $0.pointee.sin_port)
                }
            }
        }
    }
}
