import Base
import Glibc

/// One connection of the side port: reads a request, answers it, waits for the peer to close. On its loop only.
final class HTTPConnection: SocketEvents {
    private enum Phase {
        /// Next: `answering`, `closed`.
        case reading
        /// Next: `lingering`, `closed`.
        case answering
        /// Everything is sent. Closing now, with unread input, would make the kernel reset the connection, and the
        /// answer could be lost. Next: `closed`.
        case lingering
        case closed
    }

    let peers: Text

    private let descriptor: Int32
    private let loop: EventLoop
    private let timeout: Duration
    private let answer: (HTTPRequestHead) -> HTTPResponse
    private let closed: (HTTPConnection) -> Void
    private var phase = Phase.reading
    /// While reading: the request's head so far. While answering: the rest of the answer.
    private var bytes: [UInt8] = []
    private var sentByteCount = 0
    private var watch: FileWatch?
    private var timer: Timer?

    /// Takes over `descriptor`, which is connected and non-blocking. `closed` is called once.
    init(
        owning descriptor: Int32, from peers: Text, on loop: EventLoop, timeout: Duration,
        answer: @escaping (HTTPRequestHead) -> HTTPResponse, closed: @escaping (HTTPConnection) -> Void
    ) {
        self.descriptor = descriptor
        self.peers = peers
        self.loop = loop
        self.timeout = timeout
        self.answer = answer
        self.closed = closed
    }

    func start() {
        watch = FileWatch(on: loop, fileDescriptor: descriptor, handler: self)
        watch?.setReading(true)
        timer = Timer(on: loop) { [weak self] in self?.close() }
        timer?.arm(after: timeout)
    }

    func close() {
        guard phase != .closed else { return }
        phase = .closed
        watch?.cancel()
        watch = nil
        timer?.cancel()
        _ = Glibc.close(descriptor)
        closed(self)
    }

    func socketIsReadable() {
        var chunk = [UInt8](repeating: 0, count: 4_096)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
        guard count > 0 else {
            if phase == .answering { watch?.setReading(false) } else { close() }
            return
        }
        guard phase == .reading else { return }
        bytes += chunk[..<count]
        switch HTTPRequestHead.parse(bytes) {
        case .incomplete: break
        case .head(let head): send(answer(head), withBody: head.method != "HEAD")
        case .malformed: send(HTTPResponse(status: 400, body: []))
        case .tooLarge: send(HTTPResponse(status: 431, body: []))
        }
    }

    func socketIsWritable() {
        guard phase == .answering else { return }
        while sentByteCount < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                Glibc.send(
                    descriptor, bytes.baseAddress.map { $0 + sentByteCount }, bytes.count - sentByteCount,
                    Int32(MSG_NOSIGNAL))
            }
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN {
                watch?.setWriting(true)
                return
            }
            guard count >= 0 else { return close() }
            sentByteCount += count
        }
        phase = .lingering
        watch?.setWriting(false)
        watch?.setReading(true)
        shutdown(descriptor, Int32(SHUT_WR))
        timer?.cancel()
        timer?.arm(after: .seconds(1))
    }

    private func send(_ response: HTTPResponse, withBody: Bool = true) {
        phase = .answering
        bytes = response.encodedHead + (withBody ? response.body : [])
        timer?.cancel()
        timer?.arm(after: timeout)
        socketIsWritable()
    }
}

extension HTTPResponse {
    /// The response in the form of HTTP/1.1, without its body. The answer to HEAD has the length that GET would have.
    fileprivate var encodedHead: [UInt8] {
        var head = "HTTP/1.1 \(status) \(Self.phrases[status] ?? "Status")\r\nContent-Type: \(contentType)\r\n"
        head += "Content-Length: \(body.count)\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
        for field in fields {
            precondition(
                !"\(field.name)\(field.value)".utf8.contains { $0 == 10 || $0 == 13 },
                "a line break in header field \(field.name)")
            head += "\(field.name): \(field.value)\r\n"
        }
        return [UInt8]((head + "\r\n").utf8)
    }

    private static let phrases = [
        200: "OK", 204: "No Content", 302: "Found", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
        413: "Content Too Large", 431: "Request Header Fields Too Large", 503: "Service Unavailable",
    ]
}
