import Base
import Glibc

/// Where a server listens: `host:port` with a name, an IPv4 address or a bracketed IPv6 address, or `unix:/path`.
package struct ServerAddress: Sendable, Equatable, CustomStringConvertible {
    let host: String
    let port: String
    /// The address, if the host is a numeric one, or for a Unix domain socket. Nil: the host is a name, which has to be
    /// looked up.
    let numeric: ResolvedAddress?
    /// The path of a Unix domain socket, whose host is this machine.
    let path: String?

    package var description: String {
        if let path { return Self.unixPrefix + path }
        return port.isEmpty ? host : "\(host):\(port)"
    }

    /// The one endpoint of a transport, which has no address.
    init(of transport: ChannelTransport) {
        (self.host, self.port, self.path) = (transport.name, "", nil)
        self.numeric = ResolvedAddress(family: AF_UNSPEC, bytes: [])
    }

    /// Reads one address or several with commas between them. An address that comes twice counts once.
    static func list(parsing text: String, countMax: Int) throws(Failure) -> [ServerAddress] {
        var list: [ServerAddress] = []
        for part in text.utf8.split(separator: 0x2C, omittingEmptySubsequences: false) {
            let address = try ServerAddress(parsing: String(Substring(part.drop { $0 == 0x20 })))
            if !list.contains(where: { $0.place == address.place }) { list.append(address) }
            guard list.count <= countMax else {
                throw .invalid(.invalidAddress, field: "address", "names more than \(countMax) servers")
            }
        }
        return list
    }

    init(parsing text: String) throws(Failure) {
        if text.hasPrefix(Self.unixPrefix) {
            let path = text.dropFirst(Self.unixPrefix.count)
            let isPath = path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(0)
            guard isPath, path.utf8.count <= Self.pathByteCountMax else { throw Self.malformed(text) }
            (self.host, self.port, self.path) = ("localhost", "", String(path))
            self.numeric = ResolvedAddress(path: String(path))
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            throw Self.malformed(text)
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            throw Self.malformed(text)
        }
        guard !host.isEmpty else { throw Self.malformed(text) }
        self.host = host
        self.port = String(port)
        self.path = nil
        self.numeric = Self.numeric(host, String(port))
    }

    /// The address in the one form in which addresses are compared: names in lower case, and numeric addresses by their
    /// bytes. Names are not resolved.
    private var place: String {
        if path != nil { return description }
        guard let numeric else { return "\(host.lowercased()) \(port)" }
        return "\(numeric.family) \(numeric.bytes)"
    }

    /// Whether two lists of addresses name the same servers, in whatever order and notation. A list that cannot be read
    /// equals no other.
    package static func isSame(_ left: String, _ right: String) -> Bool {
        guard let those = try? list(parsing: left, countMax: .max) else { return false }
        guard let others = try? list(parsing: right, countMax: .max) else { return false }
        return Set(those.map(\.place)) == Set(others.map(\.place))
    }

    private static let unixPrefix = "unix:"
    /// The longest path that fits into `sockaddr_un`, with a NUL after it (unix(7)).
    private static let pathByteCountMax = 107

    private static func malformed(_ text: String) -> Failure {
        .invalid(
            .invalidAddress, field: "address",
            "\"\(text)\" is not host:port, for example 127.0.0.1:7400, and not unix:/path")
    }

    /// All addresses of the host, in the resolver's order (RFC 6724). Blocks while it asks a name server.
    @available(*, noasync, message: "blocks the thread")
    func resolve() throws(Failure) -> [ResolvedAddress] {
        let addresses = try Self.addresses(of: host, port, flags: AI_NUMERICSERV)
        // The server may listen on ::1 only, and many resolvers know localhost as 127.0.0.1 only.
        guard isLocalhost, let six = Self.numeric("::1", port), six.hasRoute, !addresses.contains(six) else {
            return addresses
        }
        return addresses + [six]
    }

    /// Whether the name is one that stands for this machine (RFC 6761 §6.3).
    private var isLocalhost: Bool {
        let name = host.lowercased()
        return name == "localhost" || name.hasSuffix(".localhost")
    }

    private static func numeric(_ host: String, _ port: String) -> ResolvedAddress? {
        try? addresses(of: host, port, flags: AI_NUMERICHOST | AI_NUMERICSERV).first
    }

    private static func addresses(of host: String, _ port: String, flags: Int32) throws(Failure) -> [ResolvedAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags
        var first: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, port, &hints, &first)
        guard code == 0 else {
            throw .connectionFailed(String(cString: gai_strerror(code)))
        }
        defer { freeaddrinfo(first) }
        var addresses: [ResolvedAddress] = []
        var next = first
        while let info = next {
            let bytes = UnsafeRawBufferPointer(start: info.pointee.ai_addr, count: Int(info.pointee.ai_addrlen))
            addresses.append(ResolvedAddress(family: info.pointee.ai_family, bytes: [UInt8](bytes)))
            next = info.pointee.ai_next
        }
        return addresses
    }
}

/// A `sockaddr` by its bytes.
struct ResolvedAddress: Sendable, Equatable {
    let family: Int32
    let bytes: [UInt8]

    init(family: Int32, bytes: [UInt8]) {
        self.family = family
        self.bytes = bytes
    }

    /// Whether this machine has a route to the address. Nothing is sent: connecting a UDP socket only looks it up.
    var hasRoute: Bool {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        makeNonBlocking(descriptor)
        let code = bytes.withUnsafeBytes { raw in
            connect(descriptor, raw.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
        }
        _ = Glibc.close(descriptor)
        return code == 0
    }

    /// The address of a Unix domain socket. The path is short enough for a `sockaddr_un`.
    init(path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        withUnsafeMutableBytes(of: &address) { $0[offset...].copyBytes(from: path.utf8.prefix($0.count - offset - 1)) }
        self.init(family: AF_UNIX, bytes: withUnsafeBytes(of: &address) { [UInt8]($0) })
    }
}
