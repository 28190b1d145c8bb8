import Base

/// The part of an address that all connections of one peer have in common: an IPv4 address, or the first 64 bits of an
/// IPv6 address. One peer usually has all addresses below those 64 bits.
enum PeerGroup {
    /// In hex. `::ffff:a.b.c.d` is the IPv4 address in it (RFC 4291 §2.5.5.2).
    static func of(_ address: IPAddress) -> Text { Hex.encode(Array(address.withoutMapping.bytes.prefix(8))) }
}
