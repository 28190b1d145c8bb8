import Base
import Glibc
public import Reactor
import Synchronization

/// A real HTTP/1.1 server on 127.0.0.1 that answers what a test tells it to, right or wrong. Each connection has a
/// thread, and stays open.
public final class FakeHTTPServer: Sendable {
    public struct Request: Sendable {
        public var method: String
        /// The path without the query.
        public var path: String
        public var query: [String: String]
        /// The header fields, with names in lower case.
        public var fields: [String: String]
        public var body: [UInt8]

        /// The members of a form.
        public var form: [String: String] { FakeHTTPServer.members(String(decoding: body, as: UTF8.self)) }
    }

    public enum Reply: Sendable {
        case response(HTTPResponse)
        /// Sends bytes as they are, then closes the connection.
        case raw([UInt8])
        /// Sends a head that promises more bytes than ever come, then nothing until the client gives up.
        case silence
        /// Sends nothing until the client gives up.
        case nothing
        /// Sends so many body bytes, in pieces, without a length.
        case flood(Int)
    }

    public typealias Handler = @Sendable (Request) -> Reply

    private let connections = ConnectionThreads(name: "fake-http")
    private let handler: Handler
    private let requestCounts = Mutex<[String: Int]>([:])

    public var port: UInt16 { connections.port }
    public var url: String { "http://127.0.0.1:\(port)" }

    /// The number of connections that were ever made.
    public var connectionCount: Int { connections.acceptedCount }

    /// The number of requests for this path so far.
    public func requestCount(_ path: String) -> Int { requestCounts.withLock { $0[path] ?? 0 } }

    public init(_ handler: @escaping Handler) {
        self.handler = handler
        connections.start { [self] socket in serve(socket) }
    }

    /// Cuts all connections and joins the threads.
    public func close() { connections.close() }

    private func serve(_ socket: Int32) {
        var received: [UInt8] = []
        while let request = Self.nextRequest(socket, &received) {
            requestCounts.withLock { $0[request.path, default: 0] += 1 }
            guard Self.send(handler(request), to: socket) else { return }
        }
    }

    // MARK: Bytes

    private static func nextRequest(_ socket: Int32, _ received: inout [UInt8]) -> Request? {
        while true {
            let head = headEnd(received)
            if let head, let request = parse(received[..<head]) {
                let count = Int(request.fields["content-length"] ?? "0") ?? 0
                if received.count >= head + 4 + count {
                    var whole = request
                    whole.body = Array(received[(head + 4)..<(head + 4 + count)])
                    received.removeFirst(head + 4 + count)
                    return whole
                }
            }
            var piece = [UInt8](repeating: 0, count: 16_384)
            let count = recv(socket, &piece, piece.count, 0)
            guard count > 0 else { return nil }
            received += piece[..<count]
            // The bytes are not HTTP, but a TLS handshake, for example.
            guard (0x41...0x5A).contains(received[0]) else { return nil }
        }
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (0...(bytes.count - 4)).first { Array(bytes[$0..<($0 + 4)]) == [13, 10, 13, 10] }
    }

    private static func parse(_ head: ArraySlice<UInt8>) -> Request? {
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ").map(String.init) ?? []
        guard words.count == 3 else { return nil }
        let target = words[1].split(separator: "?", maxSplits: 1).map(String.init)
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        let query = target.count == 2 ? members(target[1]) : [:]
        return Request(method: words[0], path: target[0], query: query, fields: fields, body: [])
    }

    static func members(_ text: String) -> [String: String] {
        var members: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            members[percentDecoded(parts[0])] = parts.count == 2 ? percentDecoded(parts[1]) : ""
        }
        return members
    }

    private static func percentDecoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = Hex.decode(rest.prefix(2)), value.count == 1 {
                bytes += value
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether the connection goes on.
    private static func send(_ reply: Reply, to socket: Int32) -> Bool {
        switch reply {
        case .response(let response):
            var head = "HTTP/1.1 \(response.status) Status\r\nContent-Type: \(response.contentType)\r\n"
            for field in response.fields { head += "\(field.name): \(field.value)\r\n" }
            head += "Content-Length: \(response.body.count)\r\n\r\n"
            return send([UInt8](head.utf8) + response.body, to: socket)
        case .raw(let bytes):
            _ = send(bytes, to: socket)
            return false
        case .silence:
            _ = send([UInt8]("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12".utf8), to: socket)
            return waitForClient(socket)
        case .nothing: return waitForClient(socket)
        case .flood(let count):
            guard send([UInt8]("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".utf8), to: socket) else { return false }
            let piece = [UInt8](repeating: 0x20, count: 65_536)
            var sent = 0
            while sent < count, send(piece, to: socket) { sent += piece.count }
            return false
        }
    }

    private static func waitForClient(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, 0) > 0
    }

    private static func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }
}
