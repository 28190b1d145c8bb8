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

    /// A connected socket, without Nagle's delay. `source` is the numeric IPv4 address of the loopback it comes from.
    /// If the server is not on the loopback of IPv4, or without `source`, the system chooses.
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
        if let source, Self.isLoopback(address), !Self.bind(descriptor, to: source) {
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

    /// Whether `connect(from:)` uses its source: the server is on the loopback of IPv4.
    var usesSource: Bool {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let address = found?.pointee else { return false }
        defer { freeaddrinfo(found) }
        return Self.isLoopback(address)
    }

    /// Whether the address is one of this machine: then the system's own end of a connection has it, too. Nothing is
    /// sent to find out, because connect(2) of a datagram socket only chooses the addresses.
    var isOfThisMachine: Bool {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let address = found?.pointee else { return false }
        defer { freeaddrinfo(found) }
        let descriptor = socket(
            address.ai_family, address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), address.ai_protocol)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0,
            let peer = Self.numericHost(of: descriptor, isPeer: true),
            let own = Self.numericHost(of: descriptor, isPeer: false)
        else { return false }
        // All of 127.0.0.0/8 is this machine, and the system's own end is 127.0.0.1.
        return own == peer || peer.hasPrefix("127.")
    }

    /// The address of one end of a socket, as numbers.
    private static func numericHost(of descriptor: Int32, isPeer: Bool) -> String? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var name = [CChar](repeating: 0, count: 128)
        let isKnown = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let code =
                    isPeer ? getpeername(descriptor, address, &length) : getsockname(descriptor, address, &length)
                return code == 0
                    && getnameinfo(address, length, &name, socklen_t(name.count), nil, 0, Int32(NI_NUMERICHOST)) == 0
            }
        }
        guard isKnown else { return nil }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether it is an address of 127.0.0.0/8.
    private static func isLoopback(_ address: addrinfo) -> Bool {
        guard address.ai_family == AF_INET, let name = address.ai_addr else { return false }
        return name.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
            UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 24 == 127
        }
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
