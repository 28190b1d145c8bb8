import Base
import Glibc
import Reactor

/// The connections of proxies whose header has not come. They belong to no peer until the header names one.
///
/// Runs on the loop that accepts. A header counts as the beginning of a handshake: it has the same timeout, and as many
/// headers may be on their way as TLS handshakes of one address. Above that the oldest gives way, because a proxy sends
/// its header at once.
final class ProxyIntake: @unchecked Sendable {
    // Unchecked: everything mutable is touched on `loop` only.

    let refused = Counter()
    private let loop: EventLoop
    private let limits: Limits
    private let log: Log
    private var waiting: [ProxyConnection] = []
    private var warnings = LogThrottle()

    init(on loop: EventLoop, limits: Limits, log: Log) {
        self.loop = loop
        self.limits = limits
        self.log = log
    }

    /// Reads the header, and nothing after it. `told` gets the client that the header names, or the proxy itself, and
    /// takes over the socket; it is not called for a connection that is closed. On the loop.
    func read(_ socket: Socket, from proxy: Peer, told: @escaping (Peer) -> Void) {
        if waiting.count >= limits.tlsHandshakesPerAddressMax, let oldest = waiting.first {
            refuse(oldest, "others need its place")
        }
        let connection = ProxyConnection(socket, proxy, on: loop, intake: self, told: told)
        waiting.append(connection)
        connection.start(deadline: limits.tlsHandshakeTimeout)
    }

    /// Closes the waiting connections. Any thread.
    func close() {
        loop.run { [self] in
            let waiting = waiting
            self.waiting = []
            for connection in waiting { connection.close() }
        }
    }

    fileprivate func receive(_ connection: ProxyConnection) {
        while true {
            switch ProxyHeader(connection.bytes, byteCountMax: limits.proxyHeaderMax) {
            case .incomplete(let byteCount):
                switch connection.read(byteCount) {
                case .more: continue
                case .wouldBlock: return
                case .ended: return forget(connection) { $0.close() }
                }
            case .client(let address): return pass(connection, as: Peer(address, behind: connection.proxy))
            case .proxyItself: return pass(connection, as: connection.proxy)
            case .malformed(let fault): return refuse(connection, fault.rawValue)
            }
        }
    }

    private func pass(_ connection: ProxyConnection, as peer: Peer) {
        forget(connection) {
            $0.release()
            $0.told(peer)
        }
    }

    fileprivate func refuse(_ connection: ProxyConnection, _ reason: String) {
        refused.add()
        forget(connection) { $0.close() }
        guard warnings.admit(at: .now) else { return }
        log.warning(
            "a connection from proxy_protocol_from was closed for its header", ["reason": .text(reason)])
    }

    private func forget(_ connection: ProxyConnection, _ body: (ProxyConnection) -> Void) {
        guard let index = waiting.firstIndex(where: { $0 === connection }) else { return }
        waiting.remove(at: index)
        body(connection)
    }
}

/// One connection whose header is read. On its loop only.
private final class ProxyConnection: SocketEvents {
    enum Step { case more, wouldBlock, ended }

    let proxy: Peer
    let told: (Peer) -> Void
    private(set) var bytes: [UInt8] = []
    private let socket: Socket
    private let loop: EventLoop
    private unowned let intake: ProxyIntake
    private var watch: FileWatch?
    private var timer: Timer?

    init(
        _ socket: Socket, _ proxy: Peer, on loop: EventLoop, intake: ProxyIntake, told: @escaping (Peer) -> Void
    ) {
        self.socket = socket
        self.proxy = proxy
        self.loop = loop
        self.intake = intake
        self.told = told
    }

    func start(deadline: Duration) {
        watch = FileWatch(on: loop, fileDescriptor: socket.descriptor, handler: self)
        watch?.setReading(true)
        timer = Timer(on: loop) { [unowned self] in intake.refuse(self, "it did not come in time") }
        timer?.arm(after: deadline)
    }

    /// Reads at most `byteCount` bytes, because the bytes after the header are not for this type.
    func read(_ byteCount: Int) -> Step {
        withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { buffer -> Step in
            guard let start = buffer.baseAddress else { return .ended }
            switch socket.read(into: start, byteCount: byteCount) {
            case .bytes(let count) where count > 0:
                bytes += buffer[..<count]
                return .more
            case .wouldBlock: return .wouldBlock
            default: return .ended
            }
        }
    }

    /// Stops watching the descriptor, which stays open.
    func release() {
        watch?.cancel()
        watch = nil
        timer?.cancel()
        timer = nil
    }

    func close() {
        release()
        socket.close()
    }

    func socketIsReadable() { intake.receive(self) }
    func socketIsWritable() {}
}
