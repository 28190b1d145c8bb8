import Base
import Glibc
import Synchronization
import TestSupport

/// A proxy to the engine that loses questions or answers together with their connection, or takes long to forward them.
final class LossyProxy: Sendable {
    enum Loss: Sendable {
        /// The next bytes from the client do not reach the server.
        case question
        /// The next bytes from the client reach the server; its answer to them does not reach the client.
        case answer
    }

    private struct State {
        var next: Loss?
        /// A question is lost after this number of arrivals from clients, again and again.
        var period: Int?
        var left = 0
        /// In microseconds.
        var delay: UInt32 = 0
        var links: [Link] = []
        var threads: [OSThread] = []
        var descriptors: [Int32] = []
    }

    let port: UInt16
    private let listener: Int32
    private let target: UInt16
    private let state = Mutex(State())

    /// Forwards to `target` on loopback.
    init(target: UInt16) {
        self.target = target
        (listener, port) = boundSocket()
        precondition(listen(listener, 16) == 0, "listen failed")
        start { $0.accept() }
    }

    func lose(_ loss: Loss) { state.withLock { $0.next = loss } }

    /// Loses the last of every `count` arrivals from clients, and its connection, for as long as the proxy lasts. The
    /// first loss comes after `first` arrivals.
    func loseOne(of count: Int, first: Int? = nil) { state.withLock { ($0.period, $0.left) = (count, first ?? count) } }

    /// Holds back all that arrives from now on, in either direction, for so many microseconds.
    func delay(by microseconds: UInt32) { state.withLock { $0.delay = microseconds } }

    /// The present connections stay open and forward nothing any more, as if a machine on the way had forgotten them.
    func fallSilent() {
        for link in state.withLock({ $0.links }) { link.isSilent.store(true, ordering: .sequentiallyConsistent) }
    }

    func stop() {
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

    private func start(_ body: @escaping @Sendable (LossyProxy) -> Void) {
        state.withLock { $0.threads.append(OSThread(name: "proxy") { [self] in body(self) }) }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = Self.loopback(target)
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            let link = Link()
            state.withLock { state in
                state.descriptors += [client, server]
                state.links.append(link)
            }
            start { $0.forward(from: client, to: server, isClient: true, link) }
            start { $0.forward(from: server, to: client, isClient: false, link) }
        }
    }

    /// A client's connection, and its connection to the server.
    private final class Link: Sendable {
        /// Whether what the server says is lost.
        let isMute = Atomic(false)
        let isSilent = Atomic(false)
    }

    private func forward(from source: Int32, to target: Int32, isClient: Bool, _ link: Link) {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(source, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            let delay = state.withLock { $0.delay }
            if delay > 0 { usleep(delay) }
            if link.isSilent.load(ordering: .sequentiallyConsistent) { continue }
            if isClient {
                let loss = state.withLock { state in
                    defer { state.next = nil }
                    guard let period = state.period else { return state.next }
                    state.left -= 1
                    guard state.left == 0 else { return state.next }
                    state.left = period
                    return .question
                }
                if loss == .question { break }
                if loss == .answer { link.isMute.store(true, ordering: .sequentiallyConsistent) }
            } else if link.isMute.load(ordering: .sequentiallyConsistent) {
                break
            }
            guard send(target, chunk, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}
