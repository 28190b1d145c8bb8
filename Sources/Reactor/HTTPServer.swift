public import Base
import Glibc

/// The answer of a route of the side port.
public struct HTTPResponse: Sendable {
    public var status: Int
    public var contentType: String
    /// Further header fields, such as `Cache-Control`. Ours alone: never text from outside.
    public var fields: [(name: String, value: String)]
    public var body: [UInt8]

    public init(
        status: Int = 200, contentType: String = "text/plain; charset=utf-8",
        fields: [(name: String, value: String)] = [], body: [UInt8]
    ) {
        self.status = status
        self.contentType = contentType
        self.fields = fields
        self.body = body
    }
}

/// The reason why the side port could not be opened.
public struct HTTPServerError: Error, Sendable, CustomStringConvertible {
    public var address: String
    public var port: UInt16
    public var errno: Int32

    public var description: String {
        "cannot listen for HTTP on \(address) port \(port): \(String(cString: strerror(errno)))"
    }
}

/// Counts of the side port, for /metrics.
public final class HTTPServerMetrics: Sendable {
    public let connectionsOpen = Gauge()
    /// Connections that were closed to make room for a new one.
    public let connectionsDisplaced = Counter()

    public init() {}
}

/// The side port: fixed paths, GET and HEAD only, one request per connection, for metrics, health and key sets.
///
/// Serves on the given loop, so a route must be quick. Another method is 405, another path 404; heads above 8 KiB and
/// bodies above 1 KiB are refused. A request has `Limits.httpRequestTimeout` to arrive, its answer as long to leave.
/// Above `Limits.httpConnectionsMax`, and above `httpConnectionsPerAddressMax` of one address, a new connection takes
/// the place of the oldest: connections that are slow or silent keep nobody out, and take no descriptors from the RPC
/// port. Opened and closed on the loop's thread, or while the loop does not run.
public final class HTTPServer: SocketEvents {
    public typealias Route = @Sendable () -> HTTPResponse
    // Not bytes: the names are our own, and nothing is kept from anybody by them.
    public typealias Routes = [String: Route]

    public static let headByteCountMax = HTTPRequestHead.byteCountMax
    public static let bodyByteCountMax = 1024
    /// After accept(2) failed (EMFILE) no connection is taken for this long: it would fail again every turn.
    private static let acceptPause = Duration.seconds(1)

    public let loop: EventLoop
    /// The port that was bound: the system's choice when 0 was asked for.
    public let port: UInt16

    private let routes: [String: Route]
    private let limits: Limits
    private let metrics: HTTPServerMetrics
    private let descriptor: Int32
    private var watch: FileWatch?
    private var resumeTimer: Timer?
    /// The open connections, the oldest first.
    private var connections: [HTTPConnection] = []

    /// Binds and listens at once. `address` is an IPv4 or IPv6 address; `routes` are keyed by the exact path.
    public init(
        on loop: EventLoop, address: String, port: UInt16, routes: [String: Route], limits: Limits = Limits(),
        metrics: HTTPServerMetrics = HTTPServerMetrics()
    ) throws(HTTPServerError) {
        loop.checkOwner()
        (self.descriptor, self.port) = try listen(address, port)
        self.loop = loop
        self.routes = routes
        self.limits = limits
        self.metrics = metrics
        watch = FileWatch(on: loop, fileDescriptor: descriptor, handler: WeakEvents(self))
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
        _ = Glibc.close(descriptor)
        let open = connections
        connections = []
        metrics.connectionsOpen.set(0)
        for connection in open { connection.close() }
    }

    public func socketIsReadable() {
        // A bound per turn, so that a flood of connections does not keep the others waiting.
        for _ in 0..<16 {
            let socket = accept(descriptor, nil, nil)
            if socket >= 0 {
                _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK)
                _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
                admit(socket)
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return
            default:
                watch?.setReading(false)
                resumeTimer?.arm(after: Self.acceptPause)
                return
            }
        }
    }

    public func socketIsWritable() {}

    private func admit(_ socket: Int32) {
        let peers = PeerGroup.of(socket)
        let ofAddress = connections.filter { $0.peers == peers }
        if ofAddress.count >= limits.httpConnectionsPerAddressMax {
            displace(ofAddress.first)
        } else if connections.count >= limits.httpConnectionsMax {
            displace(connections.first)
        }
        let connection = HTTPConnection(
            owning: socket, from: peers, on: loop, timeout: limits.httpRequestTimeout,
            // Weak: a server that is dropped closes its connections when it is hardly there any more.
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

/// The watch of the listening socket, which must not keep the server: whoever drops the server closes it.
private final class WeakEvents: SocketEvents {
    private weak var server: HTTPServer?

    init(_ server: HTTPServer) { self.server = server }

    func socketIsReadable() { server?.socketIsReadable() }
    func socketIsWritable() {}
}

/// A listening, non-blocking socket and the port it is bound to.
private func listen(_ address: String, _ port: UInt16) throws(HTTPServerError) -> (descriptor: Int32, port: UInt16) {
    var four = sockaddr_in()
    var six = sockaddr_in6()
    let isIPv6 = address.utf8.contains(UInt8(ascii: ":"))
    four.sin_family = sa_family_t(AF_INET)
    four.sin_port = port.bigEndian
    six.sin6_family = sa_family_t(AF_INET6)
    six.sin6_port = port.bigEndian
    let isAddress = isIPv6 ? inet_pton(AF_INET6, address, &six.sin6_addr) : inet_pton(AF_INET, address, &four.sin_addr)
    guard isAddress == 1 else { throw HTTPServerError(address: address, port: port, errno: EINVAL) }
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(isIPv6 ? AF_INET6 : AF_INET, kind, 0)
    guard descriptor >= 0 else { throw HTTPServerError(address: address, port: port, errno: errno) }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    let isBound =
        isIPv6
        ? withUnsafeBytes(of: &six) { bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, 28) == 0 }
        : withUnsafeBytes(of: &four) {
            bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, 16) == 0
        }
    guard isBound, Glibc.listen(descriptor, 128) == 0 else {
        let code = errno
        _ = Glibc.close(descriptor)
        throw HTTPServerError(address: address, port: port, errno: code)
    }
    return (descriptor, boundPort(of: descriptor))
}

private func boundPort(of socket: Int32) -> UInt16 {
    var address = sockaddr_storage()
    var byteCount = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &address) { bytes in
        let code = getsockname(socket, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &byteCount)
        precondition(code == 0, "getsockname of a listening socket: errno \(errno)")
        // The port follows the family, for IPv4 and IPv6 alike.
        return UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
}
