import Glibc
import Synchronization
import TestSupport

/// A mail server on 127.0.0.1 that takes mail and is as slow as a test wants. Each connection has a thread.
final class FakeMailServer: Sendable {
    private let connections = ConnectionThreads(name: "fake-mail")
    private let greets: Bool
    private let answers: [String: String]
    private let beforeAnswer: @Sendable () -> Void
    private let wholeMails = Atomic(0)

    var port: UInt16 { connections.port }

    /// The number of mails that came whole.
    var wholeCount: Int { wholeMails.load(ordering: .sequentiallyConsistent) }
    var connectionCount: Int { connections.openCount }

    /// `greets`: whether a connection gets a greeting. `answers`: those to other commands than the usual ones, by the
    /// first four letters of the command; by "", the greeting. `beforeAnswer` is called before the answer to a whole
    /// mail.
    init(
        greets: Bool = true, answers: [String: String] = [:], beforeAnswer: @escaping @Sendable () -> Void = {}
    ) {
        (self.greets, self.answers, self.beforeAnswer) = (greets, answers, beforeAnswer)
        connections.start { [self] socket in talk(socket) }
    }

    /// Cuts all connections and joins the threads.
    func close() { connections.close() }

    private func talk(_ socket: Int32) {
        var (received, isMail): ([UInt8], Bool) = ([], false)
        if greets { Self.say(answers[""] ?? "220 test", to: socket) }
        while let line = Self.nextLine(socket, &received) {
            if isMail {
                guard line == "." else { continue }
                isMail = false
                wholeMails.add(1, ordering: .sequentiallyConsistent)
                beforeAnswer()
            }
            let command = line.prefix(4).uppercased()
            if let answer = answers[command] {
                Self.say(answer, to: socket)
                continue
            }
            switch command {
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
