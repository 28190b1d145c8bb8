public import Base
import Glibc
public import Reactor

/// Counts of the side port, for /metrics.
public final class HTTPServerMetrics: Sendable {
    public let connectionsOpen = Gauge()
    /// Connections that were closed to make room for a new one.
    public let connectionsDisplaced = Counter()

    public init() {}
}

/// The side port: fixed paths, GET and HEAD only, one request per connection, for metrics, health and key sets.
///
/// Serves on the given loop, so a route must be quick. Another method is answered with 405, another path with 404;
/// heads above 8 KiB and bodies above 1 KiB are refused. A request must arrive within `Limits.httpRequestTimeout`, and
/// its answer has as long to be sent. Above `Limits.httpConnectionsMax`, and above `httpConnectionsPerAddressMax` of
/// one address, a new connection takes the place of the oldest: connections that are slow or silent keep nobody out,
/// and take no descriptors from the RPC port. Opened and closed on the loop's thread, or while the loop does not run.
public final class HTTPServer: SocketEvents {
    public typealias Route = @Sendable () -> HTTPResponse
    /// By path, byte for byte. Paths come from strangers, and hashing a `String` of combining marks takes quadratic
    /// time.
    public typealias Routes = [Text: Route]

    public static let headByteCountMax = HTTPRequestHead.byteCountMax
    public static let bodyByteCountMax = 1024

    public let loop: EventLoop
    /// The address with the port that was bound: the system's choice when 0 was asked for.
    public var address: SocketAddress { socket.address }
    public var port: UInt16 { address.port }

    private let routes: Routes
    private let limits: Limits
    private let metrics: HTTPServerMetrics
    /// Not private: the tests break it, so that accept(2) fails.
    let socket: ListeningSocket
    private let tls: ServerTLS?
    private var watch: FileWatch?
    private var resumeTimer: Timer?
    private var warnings: AcceptWarnings
    /// The open connections, the oldest first.
    private var connections: [HTTPConnection] = []

    /// Binds and listens at once. `routes` are keyed by the exact path. With `tls`, the port speaks TLS, and plain text
    /// with peers for which `ServerTLS` allows it. `log` gets a line when connections cannot be accepted.
    public init(
        on loop: EventLoop, at wanted: SocketAddress, routes: Routes, limits: Limits = Limits(),
        metrics: HTTPServerMetrics = HTTPServerMetrics(), tls: ServerTLS? = nil, log: Log = .silent
    ) throws(ListenError) {
        loop.checkOwner()
        self.socket = try ListeningSocket(wanted, backlog: 128)
        self.tls = tls
        self.loop = loop
        self.routes = routes
        self.limits = limits
        self.metrics = metrics
        self.warnings = AcceptWarnings(log: log)
        watch = FileWatch(on: loop, fileDescriptor: socket.descriptor, handler: WeakEvents(self))
        watch?.setReading(true)
        resumeTimer = Timer(on: loop) { [unowned self] in watch?.setReading(true) }
    }

    deinit {
        precondition(watch == nil || loop.mayTouchBase, "an HTTPServer was dropped off its loop without close()")
        close()
    }

    /// Stops listening and closes all connections at once. A second call does nothing.
    public func close() {
        guard let watch else { return }
        loop.checkOwner()
        watch.cancel()
        self.watch = nil
        resumeTimer?.cancel()
        socket.close()
        let open = connections
        connections = []
        metrics.connectionsOpen.set(0)
        for connection in open { connection.close() }
    }

    public func socketIsReadable() {
        let code = socket.acceptWaiting(countMax: 16, while: { true }) { connection in
            Socket.makeNonBlocking(connection)
            admit(Socket(owning: connection))
        }
        guard let code else { return }
        warnings.pauses(code: code)
        watch?.setReading(false)
        resumeTimer?.arm(after: AcceptWarnings.pause)
    }

    public func socketIsWritable() {}

    private func admit(_ socket: Socket) {
        let peer = Peer(of: socket.descriptor)
        let peers = peer.group
        var stream: any ByteStream = socket
        if let tls { stream = PortStream(socket, from: peer, tls: tls, on: .http) }
        let ofAddress = connections.filter { $0.peers == peers }
        if ofAddress.count >= limits.httpConnectionsPerAddressMax {
            displace(ofAddress.first)
        } else if connections.count >= limits.httpConnectionsMax {
            displace(connections.first)
        }
        let connection = HTTPConnection(
            owning: stream, from: peers, on: loop, timeout: limits.httpRequestTimeout,
            // Weak: a server that is dropped closes its connections in its own `deinit`.
            answer: { [weak self] in self?.answer($0) ?? HTTPResponse(status: 503, body: []) },
            closed: { [weak self] in self?.removed($0) })
        connections.append(connection)
        metrics.connectionsOpen.set(Int64(connections.count))
        connection.start()
    }

    private func displace(_ connection: HTTPConnection?) {
        guard let connection else { return }
        metrics.connectionsDisplaced.add()
        connection.close()
    }

    private func removed(_ connection: HTTPConnection) {
        connections.removeAll { $0 === connection }
        metrics.connectionsOpen.set(Int64(connections.count))
    }

    private func answer(_ head: HTTPRequestHead) -> HTTPResponse {
        if head.bodyByteCount > Self.bodyByteCountMax { return HTTPResponse(status: 413, body: []) }
        guard head.method == "GET" || head.method == "HEAD" else {
            return HTTPResponse(status: 405, fields: [("Allow", "GET, HEAD")], body: [])
        }
        return routes[head.path]?() ?? HTTPResponse(status: 404, body: [])
    }
}

/// The event handler of the listening socket. It must not retain the server, because dropping the server closes it.
private final class WeakEvents: SocketEvents {
    private weak var server: HTTPServer?

    init(_ server: HTTPServer) { self.server = server }

    func socketIsReadable() { server?.socketIsReadable() }
    func socketIsWritable() {}
}
