import Base
import CEvent
import Glibc

/// What a route of the side port answers.
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

/// Why the side port could not be opened.
public struct HTTPServerError: Error, Sendable, CustomStringConvertible {
    public var address: String
    public var port: UInt16
    public var errno: Int32

    public var description: String {
        "cannot listen for HTTP on \(address) port \(port): \(String(cString: strerror(errno)))"
    }
}

/// The side port: fixed paths, GET only, HTTP/1.1 without keep-alive, for metrics, health and key sets.
///
/// Serves on the given loop, so a route must be quick. Another method is 405, another path 404; heads above 8 KiB and
/// bodies above 1 KiB are refused; a peer that is silent for `timeoutSeconds` is cut off. evhttp 2.1 has no limit on
/// connections: bind it to an internal address. Opened and closed on the loop's thread, or while the loop does not run.
public final class HTTPServer {
    public typealias Route = @Sendable () -> HTTPResponse

    public static let headByteCountMax = 8 * 1024
    public static let bodyByteCountMax = 1024
    public static let timeoutSeconds: Int32 = 10
    /// After accept(2) failed (EMFILE) no connection is taken for up to this long: it would fail again every turn.
    private static let acceptPause = Duration.seconds(1)

    public let loop: EventLoop
    /// The port that was bound: the system's choice when 0 was asked for.
    public let port: UInt16

    private let routes: [String: Route]
    private var http: OpaquePointer?
    private let listener: OpaquePointer
    private var resumeTimer: Timer?

    /// Binds and listens at once. `address` is an IPv4 or IPv6 address; `routes` are keyed by the exact path.
    public init(on loop: EventLoop, address: String, port: UInt16, routes: [String: Route]) throws(HTTPServerError) {
        loop.checkOwner()
        guard let http = evhttp_new(loop.base) else { preconditionFailure("evhttp_new failed") }
        guard let socket = evhttp_bind_socket_with_handle(http, address, port) else {
            let code = errno
            evhttp_free(http)
            throw HTTPServerError(address: address, port: port, errno: code)
        }
        self.loop = loop
        self.http = http
        self.listener = evhttp_bound_socket_get_listener(socket)
        self.port = boundPort(of: evhttp_bound_socket_get_fd(socket))
        self.routes = routes
        evhttp_set_max_headers_size(http, Self.headByteCountMax)
        evhttp_set_max_body_size(http, Self.bodyByteCountMax)
        evhttp_set_timeout(http, Self.timeoutSeconds)
        // All it knows: what it does not pass on it would answer with 501 itself.
        evhttp_set_allowed_methods(http, 0x1FF)
        // Unretained: the server frees evhttp, and with it the callbacks, before it goes (`close`, `deinit`).
        let this = Unmanaged.passUnretained(self).toOpaque()
        evhttp_set_gencb(
            http,
            { request, this in Unmanaged<HTTPServer>.fromOpaque(this!).takeUnretainedValue().answer(request!) }, this)
        // The callback's pointer is evhttp's, not ours: it can only disable, and the timer enables again.
        evconnlistener_set_error_cb(listener) { listener, _ in _ = evconnlistener_disable(listener) }
        resumeTimer = Timer(on: loop) { [unowned self] in resumeAccepting() }
        resumeAccepting()
    }

    deinit {
        precondition(http == nil || loop.mayTouchBase, "an HTTPServer was dropped off its loop without close()")
        close()
    }

    /// Stops listening and cuts open connections off. Again: nothing.
    public func close() {
        guard let http else { return }
        loop.checkOwner()
        resumeTimer?.cancel()
        evhttp_free(http)
        self.http = nil
    }

    private func resumeAccepting() {
        evconnlistener_enable(listener)
        resumeTimer?.arm(after: Self.acceptPause)
    }

    private func answer(_ request: OpaquePointer) {
        guard evhttp_request_get_command(request) == EVHTTP_REQ_GET else {
            send(HTTPResponse(status: 405, fields: [("Allow", "GET")], body: []), to: request)
            return
        }
        let path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request)).map { String(cString: $0) } ?? ""
        send(routes[path]?() ?? HTTPResponse(status: 404, body: []), to: request)
    }

    private func send(_ response: HTTPResponse, to request: OpaquePointer) {
        let fields = evhttp_request_get_output_headers(request)
        evhttp_add_header(fields, "Content-Type", response.contentType)
        evhttp_add_header(fields, "X-Content-Type-Options", "nosniff")
        evhttp_add_header(fields, "Connection", "close")
        for field in response.fields {
            let code = evhttp_add_header(fields, field.name, field.value)
            precondition(code == 0, "a line break in header field \(field.name)")
        }
        let body = evbuffer_new()
        _ = response.body.withUnsafeBytes { evbuffer_add(body, $0.baseAddress, $0.count) }
        // A nil reason: evhttp fills in the standard phrase.
        evhttp_send_reply(request, Int32(response.status), nil, body)
        evbuffer_free(body)
    }
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
