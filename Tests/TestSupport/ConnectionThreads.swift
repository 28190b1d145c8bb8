import Base
import Glibc
import Synchronization

/// A listening socket on 127.0.0.1 for the servers that tests make up. Each connection has a thread.
public final class ConnectionThreads: Sendable {
    public let port: UInt16
    private let listener: Int32
    private let name: String
    private let state = Mutex(State())

    private struct State {
        var sockets: Set<Int32> = []
        var threads: [OSThread] = []
        var acceptedCount = 0
        var isClosed = false
    }

    /// The number of connections that were ever accepted.
    public var acceptedCount: Int { state.withLock { $0.acceptedCount } }

    /// The number of connections that are open.
    public var openCount: Int { state.withLock { $0.sockets.count } }

    /// Connections wait until `start`. `name`: the threads' name.
    public init(name: String) {
        self.name = name
        (listener, port) = boundSocket()
        precondition(listen(listener, 128) == 0, "listen failed")
    }

    /// Runs `serve` for each connection on its thread. The connection ends when `serve` returns.
    public func start(_ serve: @escaping @Sendable (Int32) -> Void) {
        let thread = OSThread(name: name) { [self] in acceptUntilClosed(serve) }
        state.withLock { $0.threads.append(thread) }
    }

    /// Cuts the connections that are open. New ones are accepted.
    public func cut() {
        // Within the lock: a socket is closed, and its number free for another file, only after it left the set.
        state.withLock { state in
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    /// Cuts all connections and joins the threads. Further calls do nothing.
    public func close() {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        if wasClosed { return }
        cut()
        shutdown(listener, Int32(SHUT_RDWR))
        while let thread = state.withLock({ $0.threads.popLast() }) { thread.join() }
        _ = Glibc.close(listener)
    }

    private func acceptUntilClosed(_ serve: @escaping @Sendable (Int32) -> Void) {
        while true {
            let socket = accept(listener, nil, nil)
            guard socket >= 0 else { return }
            let isClosed = state.withLock { state in
                if state.isClosed { return true }
                state.sockets.insert(socket)
                state.acceptedCount += 1
                state.threads.append(
                    OSThread(name: name) { [self] in
                        serve(socket)
                        end(socket)
                    })
                return false
            }
            if isClosed { _ = Glibc.close(socket) }
        }
    }

    private func end(_ socket: Int32) {
        state.withLock { _ = $0.sockets.remove(socket) }
        _ = Glibc.close(socket)
    }
}
