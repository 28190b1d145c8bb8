import Base
import Glibc
import TLS

/// Where the server is: `host:port`, the host an address or a name, IPv6 in brackets.
struct ServerAddress: Sendable, CustomStringConvertible {
    let host: String
    let port: UInt16
    /// The TLS settings, with the certificates to trust. Nil: plain text.
    var tls: TLSContext?

    /// How long a connection waits for a server that does not accept it, or neither sends nor reads anything.
    var silenceSecondsMax = 30

    init(parsing text: String) throws(UsageError) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            throw UsageError("--server: \"\(text)\" must be host:port")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        self.host = String(host)
        self.port = port
    }

    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// A connected socket, without Nagle's delay. `source` is the numeric IPv4 address it comes from; nil leaves that
    /// to the system.
    func connect(from source: String? = nil) throws(BenchError) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &found)
        guard code == 0, let address = found?.pointee else {
            throw BenchError(.notReady, "\(self): \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(
            address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), address.ai_protocol)
        guard descriptor >= 0 else { throw .system(.notReady, "socket") }
        if let source, !Self.bind(descriptor, to: source) {
            let error = BenchError.system(.notReady, "bind to \(source)")
            close(descriptor)
            throw error
        }
        // The send timeout of socket(7) limits connect(2) too; the system's own limit is minutes.
        var patience = timeval(tv_sec: silenceSecondsMax, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 else {
            let error =
                errno == EINPROGRESS
                ? BenchError(.notReady, "connect to \(self): no answer in \(silenceSecondsMax) s")
                : BenchError.system(.notReady, "connect to \(self)")
            close(descriptor)
            throw error
        }
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return descriptor
    }

    private static func bind(_ descriptor: Int32, to source: String) -> Bool {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        guard inet_pton(AF_INET, source, &address.sin_addr) == 1 else { return false }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
