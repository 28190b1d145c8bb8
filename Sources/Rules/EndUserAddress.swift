public import Base

/// An end user's address as an application states it (`end_user_ip`): parsed once, on arrival.
///
/// `EndUserAddress("::ffff:192.0.2.1")` and `EndUserAddress("192.0.2.1")` are equal; so are all spellings of an IPv6
/// address. Names, ports, brackets and zones ("fe80::1%eth0") are not accepted.
public struct EndUserAddress: Sendable, Hashable {
    /// "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", the longest way to write an address.
    public static let byteCountMax = 45

    private let address: IPAddress

    public init?(_ text: Text) {
        guard text.byteCount <= Self.byteCountMax, let address = IPAddress(text.string) else { return nil }
        self.address = address.withoutMapping
    }

    /// The one spelling that is stored: "192.0.2.1", "2001:db8::1".
    public var text: Text { Text(unchecked: [UInt8](address.description.utf8)) }

    /// The part that counts as one source: an IPv4 address, or the first 64 bits of an IPv6 one. Every user of IPv6 has
    /// at least 2^64 addresses that begin with the same 64 bits.
    public var network: [UInt8] { address.bytes.count == 4 ? address.bytes : Array(address.bytes[..<8]) }
}

extension Failure {
    public static let invalidEndUserIP = Failure.invalid(
        .invalidEndUserIP, field: "end_user_ip",
        "must be an IPv4 or IPv6 address such as 192.0.2.1 or 2001:db8::1, without port, brackets or zone")
}
