import Base
import Glibc
import Synchronization

/// A proxy to the server that loses answers: it forwards frames in both directions, counts requests by method, and
/// cuts the connection in place of the answer to a request, once the server has given that answer.
public final class CuttingProxy: Sendable {
    private struct State {
        var requests: [String: Int] = [:]
        /// The answer to the next request of this method is lost.
        var cut: String?
        /// The server seems to be an older one, without this method.
        var hidden: String?
        var isHolding = false
        /// The answer to the next request of this method is held behind so many of its frames.
        var held: (method: String, frameCount: Int)?
        /// New connections are closed at once.
        var isDown = false
        var goesDownAtCut = false
        var refusedCount = 0
        var threads: [OSThread] = []
        var descriptors: [Int32] = []
    }

    /// The state that both directions of a connection share.
    private final class Link: Sendable {
        /// The call whose answer is lost; 0 = none.
        let lostStream = Atomic<UInt32>(0)
        /// The call whose answer is held; 0 = none.
        let heldStream = Atomic<UInt32>(0)
        /// How many frames of that answer get through before it is held.
        let framesBeforeHold = Atomic<Int>(0)
    }

    private static let headerByteCount = 10

    public let port: UInt16
    private let listener: Int32
    private let target: UInt16
    private let state = Mutex(State())
    private let methods: [String]

    /// Forwards to `target` on loopback. `methods`: the methods whose requests are counted and can be cut.
    public init(target: UInt16, methods: [String] = ["Refresh", "Update", "SignUp", "WatchAuthState"]) {
        self.methods = methods
        self.target = target
        (listener, port) = boundSocket()
        precondition(listen(listener, 16) == 0, "listen failed")
        start { $0.accept() }
    }

    public var address: String { "127.0.0.1:\(port)" }

    public func requestCount(_ method: String) -> Int { state.withLock { $0.requests[method] ?? 0 } }

    /// Loses the answer to the next request of this method; with `goingDown` nothing gets through until `comeUp`.
    public func cutNextAnswer(to method: String, goingDown: Bool = false) {
        state.withLock { ($0.cut, $0.goesDownAtCut) = (method, goingDown) }
    }

    /// The number of connections that were closed at once.
    public var refusedCount: Int { state.withLock { $0.refusedCount } }

    public func comeUp() { state.withLock { $0.isDown = false } }

    /// From now on the server seems to know nothing of this method.
    public func hide(_ method: String) { state.withLock { $0.hidden = method } }

    /// Keeps answers back until `release`.
    public func hold() { state.withLock { $0.isHolding = true } }

    /// Keeps back the answer to the next request of this method until `release`, and with it everything that follows.
    /// Of a stream, the first `frameCount` messages get through.
    public func holdNextAnswer(to method: String, after frameCount: Int = 0) {
        state.withLock { $0.held = (method, frameCount) }
    }

    public func release() { state.withLock { $0.isHolding = false } }

    /// Breaks the existing connections; new ones get through, with `goingDown` only after `comeUp`.
    public func sever(goingDown: Bool = false) {
        let descriptors = state.withLock { state in
            if goingDown { state.isDown = true }
            return state.descriptors
        }
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    /// Cuts all connections and waits for the proxy's threads.
    public func stop() {
        release()
        shutdown(listener, Int32(SHUT_RDWR))
        while true {
            let (threads, descriptors) = state.withLock { state in
                defer { (state.threads, state.descriptors) = ([], []) }
                return (state.threads, state.descriptors)
            }
            if threads.isEmpty { break }
            for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
            for thread in threads { thread.join() }
            for descriptor in descriptors { close(descriptor) }
        }
        close(listener)
    }

    private func start(_ body: @escaping @Sendable (CuttingProxy) -> Void) {
        state.withLock { $0.threads.append(OSThread(name: "proxy") { [self] in body(self) }) }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.loopback(port: target)
            let isConnected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            let isDown = state.withLock { state in
                state.descriptors += [client, server]
                return state.isDown
            }
            guard isConnected, !isDown else {
                state.withLock { $0.refusedCount += 1 }
                shutdown(client, Int32(SHUT_RDWR))
                continue
            }
            let link = Link()
            start { $0.forwardRequests(client, server, link) }
            start { $0.forwardAnswers(server, client, link) }
        }
    }

    private func forwardRequests(_ client: Int32, _ server: Int32, _ link: Link) {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(client, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            note(chunk[..<count], link)
            if let hidden = state.withLock({ $0.hidden }) { Self.misspell(hidden, in: &chunk, count) }
            guard send(server, chunk, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(server, Int32(SHUT_RDWR))
    }

    /// A small request comes in one piece, with its method's name in clear text and a length before the name.
    private func note(_ bytes: ArraySlice<UInt8>, _ link: Link) {
        var rest = bytes
        while let (frame, stream) = Self.frame(of: rest) {
            rest = rest[frame.endIndex...]
            for method in methods where Self.contains(frame, Self.field(method)) {
                state.withLock { state in
                    state.requests[method, default: 0] += 1
                    if state.cut == method {
                        state.cut = nil
                        state.isDown = state.goesDownAtCut
                        link.lostStream.store(stream, ordering: .sequentiallyConsistent)
                    }
                    if let held = state.held, held.method == method {
                        state.held = nil
                        link.framesBeforeHold.store(held.frameCount, ordering: .sequentiallyConsistent)
                        link.heldStream.store(stream, ordering: .sequentiallyConsistent)
                    }
                }
            }
        }
    }

    /// The first frame and its stream, once the whole frame is there.
    private static func frame(of bytes: ArraySlice<UInt8>) -> (frame: ArraySlice<UInt8>, stream: UInt32)? {
        func number(at offset: Int) -> UInt32 {
            bytes.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        }
        guard bytes.count >= headerByteCount else { return nil }
        let frame = bytes.prefix(headerByteCount + Int(number(at: 0)))
        return frame.count == headerByteCount + Int(number(at: 0)) ? (frame, number(at: 4)) : nil
    }

    private static func contains(_ bytes: ArraySlice<UInt8>, _ sought: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: sought) }
    }

    private static func field(_ method: String) -> [UInt8] { [UInt8(method.utf8.count)] + [UInt8](method.utf8) }

    private static func misspell(_ method: String, in chunk: inout [UInt8], _ count: Int) {
        let field = field(method)
        for start in 0..<count where chunk[start..<count].starts(with: field) {
            chunk[start + field.count - 1] = UInt8(ascii: "?")
        }
    }

    /// Goes frame by frame, so that the server's answers to other calls get through meanwhile.
    private func forwardAnswers(_ server: Int32, _ client: Int32, _ link: Link) {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var received: [UInt8] = []
        receiving: while true {
            let count = recv(server, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            received += chunk[..<count]
            while let (frame, stream) = Self.frame(of: received[...]) {
                if stream != 0, stream == link.lostStream.load(ordering: .sequentiallyConsistent) { break receiving }
                if stream != 0, stream == link.heldStream.load(ordering: .sequentiallyConsistent) { beginHold(link) }
                while state.withLock({ $0.isHolding }) { usleep(500) }
                let isSent = frame.withUnsafeBytes {
                    send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) == $0.count
                }
                guard isSent else { break receiving }
                received.removeFirst(frame.count)
            }
        }
        shutdown(client, Int32(SHUT_RDWR))
        shutdown(server, Int32(SHUT_RDWR))
    }

    /// Begins to hold, once, when the frames that may get through are through.
    private func beginHold(_ link: Link) {
        let left = link.framesBeforeHold.wrappingSubtract(1, ordering: .sequentiallyConsistent).oldValue
        if left == 0 { state.withLock { $0.isHolding = true } }
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
