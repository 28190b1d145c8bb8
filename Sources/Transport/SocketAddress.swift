import Glibc

/// Where to listen: an address and port (`127.0.0.1:7400`, `[::1]:7400`), where port 0 lets the system choose, or a
/// Unix domain socket (`unix:/run/postern/rpc.sock`).
public struct SocketAddress: Sendable, Equatable, CustomStringConvertible {
    /// Empty for a Unix domain socket, whose port is 0.
    public let host: String
    public let port: UInt16
    /// The path of a Unix domain socket; nil for other addresses.
    public let path: String?

    private static let unixPrefix = "unix:"
    /// The longest path for which `sockaddr_un` has room, with the NUL after it (unix(7)).
    public static let pathByteCountMax = 107

    /// Nil when `text` is neither `host:port` with a numeric IPv4 or bracketed IPv6 host nor `unix:` with an absolute
    /// path.
    public init?(_ text: String) {
        // Not bytes: what begins otherwise is read as numbers, or refused.
        if text.hasPrefix(Self.unixPrefix) {
            self.init(path: String(text.dropFirst(Self.unixPrefix.count)))
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        self.init(host: host, port: port)
    }

    public init?(host: String, port: UInt16) {
        self.host = host
        self.port = port
        self.path = nil
        guard withSockaddr({ _, _ in true }) != nil else { return nil }
    }

    private init(host: String, port: UInt16, path: String?) { (self.host, self.port, self.path) = (host, port, path) }

    /// 127.0.0.1. With port 0, the system chooses the port.
    public static func loopback(port: UInt16 = 0) -> SocketAddress {
        SocketAddress(host: "127.0.0.1", port: port, path: nil)
    }

    /// Nil when the path is not absolute, or too long.
    public init?(path: String) {
        let isPath = path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(0)
        guard isPath, path.utf8.count <= Self.pathByteCountMax else { return nil }
        (self.host, self.port, self.path) = ("", 0, path)
    }

    /// 127.0.0.0/8, ::1 and Unix domain sockets: reachable from this machine only.
    public var isLoopback: Bool {
        if path != nil { return true }
        return withSockaddr { address, _ in
            if address.pointee.sa_family == sa_family_t(AF_INET) {
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 24 == 127
                }
            }
            return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin6_addr) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
            }
        } ?? false
    }

    public var description: String {
        path.map { Self.unixPrefix + $0 } ?? (host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)")
    }

    /// Nil when the host is not numeric.
    func withSockaddr<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result? {
        if let path { return Self.withSockaddr(ofPath: path, body) }
        var four = sockaddr_in()
        if inet_pton(AF_INET, host, &four.sin_addr) == 1 {
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            return withUnsafePointer(to: &four) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
        var six = sockaddr_in6()
        if inet_pton(AF_INET6, host, &six.sin6_addr) == 1 {
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            return withUnsafePointer(to: &six) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                }
            }
        }
        return nil
    }

    private static func withSockaddr<Result>(
        ofPath path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        withUnsafeMutableBytes(of: &address) { $0[offset...].copyBytes(from: path.utf8.prefix(pathByteCountMax)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
