import Base
import Glibc
import Synchronization
import TestSupport

/// A mail server on 127.0.0.1 that takes mail and is as slow as a test wants. Each connection has a thread.
final class FakeMailServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let greets: Bool
    private let beforeAnswer: @Sendable () -> Void
    private let state = Mutex(State())

    private struct State {
        var sockets: Set<Int32> = []
        var threads: [OSThread] = []
        var wholeCount = 0
        var isClosed = false
    }

    /// The number of mails that came whole.
    var wholeCount: Int { state.withLock { $0.wholeCount } }
    var connectionCount: Int { state.withLock { $0.sockets.count } }

    /// `greets`: whether a connection gets a greeting. `beforeAnswer` is called before the answer to a whole mail.
    init(greets: Bool = true, beforeAnswer: @escaping @Sendable () -> Void = {}) {
        (self.greets, self.beforeAnswer) = (greets, beforeAnswer)
        (listener, port) = boundSocket()
        precondition(listen(listener, 16) == 0, "listen failed")
        let thread = OSThread(name: "fake-mail") { [self] in acceptUntilClosed() }
        state.withLock { $0.threads.append(thread) }
    }

    /// Cuts all connections and joins the threads.
    func close() {
        let sockets = state.withLock { state in
            state.isClosed = true
            return state.sockets
        }
        shutdown(listener, Int32(SHUT_RDWR))
        for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        while let thread = state.withLock({ $0.threads.popLast() }) { thread.join() }
        _ = Glibc.close(listener)
    }

    private func acceptUntilClosed() {
        while true {
            let socket = accept(listener, nil, nil)
            guard socket >= 0 else { return }
            let isClosed = state.withLock { state in
                if state.isClosed { return true }
                state.sockets.insert(socket)
                state.threads.append(OSThread(name: "fake-mail") { [self] in serve(socket) })
                return false
            }
            if isClosed { _ = Glibc.close(socket) }
        }
    }

    private func serve(_ socket: Int32) {
        talk(socket)
        state.withLock { _ = $0.sockets.remove(socket) }
        _ = Glibc.close(socket)
    }

    private func talk(_ socket: Int32) {
        var (received, isMail): ([UInt8], Bool) = ([], false)
        if greets { Self.say("220 test", to: socket) }
        while let line = Self.nextLine(socket, &received) {
            if isMail {
                guard line == "." else { continue }
                isMail = false
                state.withLock { $0.wholeCount += 1 }
                beforeAnswer()
            }
            switch line.prefix(4).uppercased() {
            case "DATA":
                isMail = true
                Self.say("354 go on", to: socket)
            case "QUIT": return Self.say("221 bye", to: socket)
            default: Self.say("250 OK", to: socket)
            }
        }
    }

    private static func say(_ line: String, to socket: Int32) {
        let bytes = Array("\(line)\r\n".utf8)
        _ = send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// The next line without its end; nil when the client has left.
    private static func nextLine(_ socket: Int32, _ received: inout [UInt8]) -> String? {
        while true {
            if let end = received.firstIndex(of: 0x0A) {
                let line = received[..<end].filter { $0 != 0x0D }
                received.removeFirst(end + 1)
                return String(decoding: line, as: UTF8.self)
            }
            var piece = [UInt8](repeating: 0, count: 4_096)
            let count = recv(socket, &piece, piece.count, 0)
            guard count > 0 else { return nil }
            received += piece[..<count]
        }
    }
}
