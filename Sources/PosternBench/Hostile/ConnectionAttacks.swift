import Base
import Glibc
import Messages
import Wire

/// Many connections without a credential, in four shapes: silent, stuck in the middle of a frame, watching the health
/// of the server, sending rubbish. A connection that the server closes is opened again.
struct AnonymousConnections: Attack {
    let name: String
    let scene: HostileScene
    private let count: Int

    private static let sources = (16..<32).map { "127.0.0.\($0)" }
    /// New connections a second, so that connecting alone does not fill the machine.
    private static let connectsPerSecondMax = 500

    init(scene: HostileScene, count: Int) {
        self.scene = scene
        self.count = count
        name = "\(count) connections without a credential"
    }

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        var sockets = [Int32](repeating: -1, count: count)
        defer { for socket in sockets where socket >= 0 { close(socket) } }
        while !isOver() {
            for index in sockets.indices where !isOver() {
                if sockets[index] >= 0, !isClosed(sockets[index]) { continue }
                if sockets[index] >= 0 {
                    close(sockets[index])
                    answers.note("closed by the server")
                }
                sockets[index] = open(index, answers)
                pause(microseconds: UInt32(1_000_000 / Self.connectsPerSecondMax))
            }
            pause(microseconds: 20_000)
        }
    }

    private func open(_ index: Int, _ answers: Answers) -> Int32 {
        guard let socket = try? scene.address.connect(from: Self.sources[index % Self.sources.count]) else {
            answers.note(Answers.notConnected)
            return -1
        }
        answers.note("connected")
        _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK)
        var bytes = ByteBuffer()
        switch index % 4 {
        case 0: break
        case 1: FrameHeader(payloadByteCount: 60_000, stream: 1, type: .request).append(to: &bytes)
        case 2:
            bytes.appendRequest(
                stream: 1, kind: .remoteClosed, service: "grpc.health.v1.Health", method: "Watch"
            ) { GRPCHealthCheckRequest().encode(into: &$0) }
        default: bytes.append(contentsOf: [UInt8]("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        }
        if !bytes.isEmpty { _ = send(socket, bytes.readable.baseAddress, bytes.readable.count, Int32(MSG_NOSIGNAL)) }
        return socket
    }

    /// Reads the server's data. Returns whether the server closed the connection.
    private func isClosed(_ socket: Int32) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = recv(socket, &bytes, bytes.count, 0)
        return count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    }
}

/// Half a request on each of many connections to the HTTP port, as slow as it may be.
struct HalfHTTPRequests: Attack {
    let name = "half requests at the HTTP port"
    let address: ServerAddress
    private static let count = 300

    init(address: ServerAddress) { self.address = address }

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        var sockets: [Int32] = []
        defer { for socket in sockets { close(socket) } }
        let half = [UInt8]("GET /metrics HTTP/1.1\r\nHost: x\r\n".utf8)
        while !isOver() {
            if sockets.count < Self.count {
                let socket = try address.connect(from: "127.0.0.5")
                answers.note("connected")
                _ = send(socket, half, half.count, Int32(MSG_NOSIGNAL))
                sockets.append(socket)
            } else {
                // One byte more on each, now and then.
                sockets = sockets.filter { socket in
                    guard send(socket, "X", 1, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) < 0, errno != EAGAIN else {
                        return true
                    }
                    close(socket)
                    answers.note("closed by the server")
                    return false
                }
                pause(microseconds: 200_000)
            }
        }
    }
}

/// Many connections that ask for long pages and never read. A connection that the server closes is opened again.
struct NeverReadingListers: Attack {
    let name: String
    let scene: HostileScene
    private let count: Int
    private static let requestsEach = 40
    /// POLLRDHUP of Linux, which Glibc's module does not show.
    private static let peerClosed: Int16 = 0x2000

    init(scene: HostileScene, count: Int) {
        self.scene = scene
        self.count = count
        name = "tenant-admin: \(count) listers who never read"
    }

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        var listers: [Connection] = []
        while !isOver() {
            if listers.count < count {
                listers.append(try lister())
                answers.note("connected")
                continue
            }
            pause(microseconds: 50_000)
            let before = listers.count
            listers.removeAll { isClosed($0.descriptor) }
            for _ in listers.count..<before { answers.note("closed by the server") }
        }
    }

    private func lister() throws -> Connection {
        let party = scene.hostileAdmin
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.7")
        let request = UsersListRequest(tenantID: party.tenantID, pageSize: 1_000)
        for _ in 0..<Self.requestsEach {
            guard let stream = connection.takeStream() else { break }
            connection.output.appendRequest(stream: stream, service: "postern.v1.Users", method: "List") {
                request.encode(into: &$0)
            }
        }
        try connection.flush()
        return connection
    }

    /// Whether the server closed the connection, found without reading its data.
    private func isClosed(_ socket: Int32) -> Bool {
        var state = pollfd(fd: socket, events: Self.peerClosed, revents: 0)
        return poll(&state, 1, 0) > 0 && state.revents & (Self.peerClosed | Int16(POLLHUP | POLLERR)) != 0
    }
}

/// Requests with large answers that nobody reads.
struct UnreadAnswers: Attack {
    let name = "tenant-admin: unread answers"
    let scene: HostileScene

    func run(_ answers: Answers, until isOver: () -> Bool) throws {
        let party = scene.hostileAdmin
        let connection = try Connection(to: scene.address, authorization: party.authorization, from: "127.0.0.6")
        let request = UsersListRequest(tenantID: party.tenantID, pageSize: 1_000)
        while !isOver() {
            if connection.output.isEmpty, let stream = connection.takeStream() {
                connection.output.appendRequest(stream: stream, service: "postern.v1.Users", method: "List") {
                    request.encode(into: &$0)
                }
            }
            switch connection.send() {
            case .bytes: answers.note("sent")
            case .wouldBlock: pause(microseconds: 10_000)
            case .failed: throw BenchError(.failed, "closed by the server")
            }
        }
    }
}
