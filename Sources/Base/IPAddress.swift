import Glibc

/// An IPv4 (4 bytes) or IPv6 (16 bytes) address in network order.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// The networks that an address belongs to (IANA's special-purpose address registries).
    public enum Reach: Sendable {
        case global
        case privateNetwork
        case loopback
        /// Link-local, multicast, broadcast, unspecified, documentation, benchmarks, reserved, and the addresses of
        /// clouds' metadata services that are not link-local.
        case special
    }

    public let bytes: [UInt8]

    /// 4 or 16 bytes, else nil.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Reads the usual notation: "192.0.2.1", "2001:db8::1".
    public init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.bytes = Array(bytes[..<4])
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.bytes = bytes
        } else {
            return nil
        }
    }

    /// The address in a `sockaddr_in` or a `sockaddr_in6`. Nil for another family.
    package init?(family: Int32, socketAddress: UnsafeRawBufferPointer) {
        switch family {
        case AF_INET where socketAddress.count >= 8: self.bytes = Array(socketAddress[4..<8])
        case AF_INET6 where socketAddress.count >= 24: self.bytes = Array(socketAddress[8..<24])
        default: return nil
        }
    }

    /// As RFC 5952 writes it: lower case, the longest run of zeros left out.
    public var description: String {
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
            // Never fails: "dst" has room for the longest address (inet_ntop(3)).
            guard inet_ntop(family, bytes, text.baseAddress, socklen_t(text.count)) != nil else { return "" }
            return String(cString: text.baseAddress!)
        }
    }

    /// The IPv4 address that this IPv6 address stands for (::ffff:192.0.2.1, RFC 4291 §2.5.5.2), or else this address.
    public var withoutMapping: IPAddress {
        let isMapped =
            bytes.count == 16 && bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return isMapped ? IPAddress(bytes: Array(bytes[12...])) ?? self : self
    }

    /// The addresses of a name, in the order in which the machine's resolver gives them (getaddrinfo(3)); at most
    /// `countMax`. Empty if there are none, or if the resolver gave up.
    ///
    /// Nothing ends a lookup: it blocks until the resolver has an answer, or has waited for its name servers.
    @available(*, noasync, message: "blocks the thread")
    public static func lookUp(_ name: String, countMax: Int) -> [IPAddress] {
        resolve(name, flags: 0, countMax: countMax)
    }

    /// The addresses of a host that needs no resolver: an address in any notation that getaddrinfo(3) reads
    /// ("127.0.0.1", "127.1", "0x7f000001", "::1"), or a name that RFC 6761 §6.3 reserves for this machine
    /// ("localhost"). Nil for any other name. Never blocks.
    public static func known(_ host: Text) -> [IPAddress]? {
        if let address = IPAddress(host.string) { return [address] }
        if let label = host.bytes.split(separator: UInt8(ascii: ".")).last,
            label.map({ $0 | 0x20 }) == [UInt8]("localhost".utf8)
        {
            return [IPAddress("::1"), IPAddress("127.0.0.1")].compactMap { $0 }
        }
        let written = resolve(host.string, flags: AI_NUMERICHOST, countMax: 1)
        return written.isEmpty ? nil : written
    }

    private static func resolve(_ name: String, flags: Int32, countMax: Int) -> [IPAddress] {
        var hints = addrinfo()
        hints.ai_flags = flags
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var first: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &first) == 0 else { return [] }
        defer { freeaddrinfo(first) }
        var addresses: [IPAddress] = []
        var next = first
        while let info = next?.pointee, addresses.count < countMax {
            let bytes = UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen))
            if let address = IPAddress(family: info.ai_family, socketAddress: bytes) { addresses.append(address) }
            next = info.ai_next
        }
        return addresses
    }

    public var reach: Reach { bytes.count == 4 ? Self.reach(ofIPv4: bytes[...]) : reachOfIPv6 }

    /// The clouds' metadata services with addresses of their own: Google, Oracle, Linode (Akamai) and Scaleway.
    private static let metadataServices: Set<IPAddress> = Set(
        ["fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1", "fd00:42::42"].compactMap { IPAddress($0) })

    private static func reach(ofIPv4 bytes: ArraySlice<UInt8>) -> Reach {
        let value = bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        func isIn(_ prefix: UInt32, _ bitCount: UInt32) -> Bool { (value ^ prefix) >> (32 - bitCount) == 0 }
        if isIn(0x7F00_0000, 8) { return .loopback }
        // 100.100.100.200 is Alibaba's metadata service, 168.63.129.16 Azure's (the WireServer).
        if value == 0x6464_64C8 || value == 0xA83F_8110 { return .special }
        // 10/8, 172.16/12, 192.168/16, 100.64/10
        if isIn(0x0A00_0000, 8) || isIn(0xAC10_0000, 12) || isIn(0xC0A8_0000, 16) || isIn(0x6440_0000, 10) {
            return .privateNetwork
        }
        // 0/8, 169.254/16, 192.0.0/24, 192.0.2/24, 192.88.99/24, 198.18/15, 198.51.100/24, 203.0.113/24, 224/3
        let isSpecial =
            isIn(0, 8) || isIn(0xA9FE_0000, 16) || isIn(0xC000_0000, 24) || isIn(0xC000_0200, 24)
            || isIn(0xC058_6300, 24) || isIn(0xC612_0000, 15) || isIn(0xC633_6400, 24) || isIn(0xCB00_7100, 24)
            || isIn(0xE000_0000, 3)
        return isSpecial ? .special : .global
    }

    private var reachOfIPv6: Reach {
        func begins(_ prefix: [UInt8]) -> Bool { bytes.starts(with: prefix) }
        let zeroes = [UInt8](repeating: 0, count: 10)
        if bytes[..<15].allSatisfy({ $0 == 0 }) { return bytes[15] == 1 ? .loopback : .special }
        // An address that stands for an IPv4 address has its reach: mapped, NAT64 (64:ff9b::/96), 6to4.
        if begins(zeroes + [0xFF, 0xFF]) { return Self.reach(ofIPv4: bytes[12...]) }
        if begins([0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) { return Self.reach(ofIPv4: bytes[12...]) }
        if begins([0x20, 0x02]) { return Self.reach(ofIPv4: bytes[2..<6]) }
        // fd00:ec2::/32 is Amazon's for the services of an instance, with fd00:ec2::254 for metadata.
        if begins([0xFD, 0x00, 0x0E, 0xC2]) || Self.metadataServices.contains(self) { return .special }
        if bytes[0] & 0xFE == 0xFC { return .privateNetwork }
        // Documentation: 2001:db8::/32 and 3fff::/20.
        let isDocumentation =
            begins([0x20, 0x01, 0x0D, 0xB8]) || (begins([0x3F, 0xFF]) && bytes[2] & 0xF0 == 0)
        // Only 2000::/3 is allocated; in it, 2001::/23 is for protocols (Teredo).
        let isGlobal =
            bytes[0] & 0xE0 == 0x20 && !(begins([0x20, 0x01]) && bytes[2] & 0xFE == 0) && !isDocumentation
        return isGlobal ? .global : .special
    }
}
