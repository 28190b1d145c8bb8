public import Base
import Glibc

/// The part of an address that all connections of one peer have in common: an IPv4 address, or the first 64 bits of an
/// IPv6 address. One peer usually has all addresses below those 64 bits.
public enum PeerGroup {
    /// The group of a connected socket's peer, in hex; empty for a socket that has no address.
    public static func of(_ descriptor: Int32) -> Text {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        guard code == 0 else { return .empty }
        switch Int32(storage.ss_family) {
        case AF_INET: return withUnsafeBytes(of: &storage) { ofIPv4(Array($0[4..<8])) }
        case AF_INET6: return withUnsafeBytes(of: &storage) { ofIPv6(Array($0[8..<24])) }
        default: return .empty
        }
    }

    static func ofIPv4(_ bytes: [UInt8]) -> Text { Hex.encode(bytes) }

    /// `::ffff:a.b.c.d` is the IPv4 address in it (RFC 4291 §2.5.5.2).
    static func ofIPv6(_ bytes: [UInt8]) -> Text {
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return isMapped ? ofIPv4(Array(bytes[12...])) : Hex.encode(bytes[..<8])
    }
}
