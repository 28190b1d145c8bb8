import Base
import Glibc
import Reactor

/// One connection of the side port: reads a request, answers it, waits for the peer to close. On its loop only.
final class HTTPConnection: SocketEvents {
    private enum Phase {
        /// Next: `answering`, `lingering`, `closed`.
        case reading
        /// Next: `lingering`, `closed`.
        case answering
        /// Everything is sent, or nothing can be. Closing now, with unread input, would make the kernel reset the
        /// connection, and the answer could be lost. Next: `closed`.
        case lingering
        case closed
    }

    let peers: Text

    private static let readByteCount = 4_096
    private var stream: any ByteStream
    private let loop: EventLoop
    private let timeout: Duration
    private let answer: (HTTPRequestHead) -> HTTPResponse
    private let closed: (HTTPConnection) -> Void
    private var phase = Phase.reading
    /// While reading: the request's head so far. While answering: the rest of the answer.
    private var bytes: [UInt8] = []
    private var sentByteCount = 0
    /// The stream has to send something before it can be read.
    private var isReadBlockedByWrite = false
    private var watch: FileWatch?
    private var timer: Timer?

    /// Takes over `stream`, which is connected and non-blocking. `closed` is called once.
    init(
        owning stream: any ByteStream, from peers: Text, on loop: EventLoop, timeout: Duration,
        answer: @escaping (HTTPRequestHead) -> HTTPResponse, closed: @escaping (HTTPConnection) -> Void
    ) {
        self.stream = stream
        self.peers = peers
        self.loop = loop
        self.timeout = timeout
        self.answer = answer
        self.closed = closed
    }

    func start() {
        watch = FileWatch(on: loop, fileDescriptor: stream.descriptor, handler: self)
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
        stream.close()
        closed(self)
    }

    func socketIsReadable() {
        repeat { readOnce() } while stream.hasPendingInput && phase == .reading && !isReadBlockedByWrite
    }

    private func readOnce() {
        var chunk = [UInt8](repeating: 0, count: Self.readByteCount)
        let result = chunk.withUnsafeMutableBytes { chunk -> ByteStreamResult in
            guard let start = chunk.baseAddress else { return .wouldBlock }
            return stream.read(into: start, byteCount: chunk.count)
        }
        switch result {
        case .bytes(0), .failed: if phase == .answering { watch?.setReading(false) } else { close() }
        case .bytes(let count): if phase == .reading { received(chunk[..<count]) }
        case .wouldBlock: break
        case .wouldBlockWriting:
            isReadBlockedByWrite = true
            watch?.setReading(false)
            watch?.setWriting(true)
        case .refused: linger()
        }
    }

    private func received(_ chunk: ArraySlice<UInt8>) {
        let knownCount = bytes.count
        bytes += chunk
        switch HTTPRequestHead.parse(bytes, knownCount: knownCount) {
        case .incomplete: break
        case .head(let head): send(answer(head), withBody: head.method != "HEAD")
        case .malformed: send(HTTPResponse(status: 400, body: []))
        case .tooLarge: send(HTTPResponse(status: 431, body: []))
        }
    }

    func socketIsWritable() {
        if isReadBlockedByWrite {
            isReadBlockedByWrite = false
            watch?.setWriting(false)
            watch?.setReading(true)
            socketIsReadable()
        }
        guard phase == .answering else { return }
        while sentByteCount < bytes.count {
            let result = bytes[sentByteCount...].withUnsafeBytes { stream.write($0) }
            switch result {
            case .bytes(let count): sentByteCount += count
            case .wouldBlock, .wouldBlockWriting:
                watch?.setWriting(true)
                return
            case .refused, .failed: return close()
            }
        }
        linger()
    }

    private func linger() {
        phase = .lingering
        watch?.setWriting(false)
        watch?.setReading(true)
        stream.closeForWriting()
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
