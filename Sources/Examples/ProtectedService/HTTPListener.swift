import Glibc

/// As much HTTP/1.1 as an example needs: one request at a time, on 127.0.0.1. A service brings its own server.
final class HTTPListener {
    struct Request {
        var path: String
        var authorization: String?
    }

    struct Response {
        let status: Int
        let text: String

        init(_ status: Int, _ text: String) {
            self.status = status
            self.text = text
        }
    }

    struct ListenError: Error { let code: Int32 }

    private let descriptor: Int32
    private static let headByteCountMax = 16 * 1024

    init(port: UInt16) throws(ListenError) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var on: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
        }
        guard code == 0, listen(descriptor, 64) == 0 else { throw ListenError(code: errno) }
    }

    deinit { close(descriptor) }

    /// Waits for a connection, reads the head of a request and sends the response that `body` returns.
    func answerNext(_ body: (Request) -> Response) {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { return }
        defer { close(connection) }
        var timeout = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        let response = Self.readRequest(connection).map(body) ?? Response(400, "that was no request\n")
        let bytes = Array(
            """
            HTTP/1.1 \(response.status) \(response.status == 200 ? "OK" : "No")\r
            Content-Type: text/plain; charset=utf-8\r
            Content-Length: \(response.text.utf8.count)\r
            Connection: close\r
            \r
            \(response.text)
            """.utf8)
        _ = bytes.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    private static func readRequest(_ connection: Int32) -> Request? {
        var head: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0, head.count + count <= headByteCountMax else { return nil }
            head += chunk[..<count]
        }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count == 3, words[0] == "GET" else { return nil }
        let header = lines.first { $0.lowercased().hasPrefix("authorization: ") }
        return Request(
            path: String(words[1]), authorization: header.map { String($0.dropFirst("authorization: ".count)) })
    }
}
