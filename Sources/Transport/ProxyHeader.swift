import Base

/// The header by which a proxy names its client: the PROXY protocol, version 2 ("The PROXY protocol", HAProxy, §2.2).
/// Pure.
///
///     0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A   what it begins with
///     21                                    version 2, command PROXY (20: LOCAL)
///     11                                    IPv4 and TCP (21: IPv6 and TCP, 00: unspecified, 31: Unix)
///     00 0C                                 how many bytes follow
///     …                                     source, destination, their ports; then TLVs, which are not looked at
enum ProxyHeader: Equatable {
    /// The header is not whole; at least `byteCount` more bytes must come before more can be said.
    case incomplete(byteCount: Int)
    /// The client's address.
    case client(IPAddress)
    /// The proxy speaks for itself, or for a client without an address.
    case proxyItself
    case malformed(Fault)

    enum Fault: String, Equatable, Sendable {
        case signature = "it does not begin with a header of version 2"
        case command = "a version or a command that there is not"
        case transport = "another transport than a stream over IP or a Unix domain socket"
        case length = "longer than the bound, or shorter than its addresses"
    }

    static let firstByte: UInt8 = 0x0D
    /// For the log, when a peer that is no known proxy sends one.
    static let strangerWarning: StaticString =
        "a connection that is not from proxy_protocol_from began as with a proxy's header, and was closed"
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    private static let prefixByteCount = 16

    /// `bytes` is the input so far, with nothing after the header.
    init(_ bytes: [UInt8], byteCountMax: Int) { self = Self.parse(bytes, byteCountMax) }

    private static func parse(_ bytes: [UInt8], _ byteCountMax: Int) -> ProxyHeader {
        guard bytes.starts(with: signature.prefix(bytes.count)) else { return .malformed(.signature) }
        guard bytes.count >= prefixByteCount else { return .incomplete(byteCount: prefixByteCount - bytes.count) }
        let isLocal = bytes[12] == 0x20
        guard isLocal || bytes[12] == 0x21 else { return .malformed(.command) }
        // The addresses of LOCAL name nobody, and may have any length.
        guard let addressByteCount = isLocal ? 0 : Self.addressByteCount(bytes[13]) else {
            return .malformed(.transport)
        }
        // Two addresses, and two ports of two bytes.
        let addressesByteCount = addressByteCount > 0 ? 2 * addressByteCount + 4 : 0
        let end = prefixByteCount + Int(bytes[14]) << 8 + Int(bytes[15])
        guard end <= byteCountMax, end >= prefixByteCount + addressesByteCount else { return .malformed(.length) }
        guard bytes.count >= end else { return .incomplete(byteCount: end - bytes.count) }
        let source = bytes[prefixByteCount...].prefix(addressByteCount)
        return IPAddress(bytes: Array(source)).map { .client($0) } ?? .proxyItself
    }

    /// The length of one address; 0 if the addresses are ignored, nil for an unknown transport.
    private static func addressByteCount(_ transport: UInt8) -> Int? {
        switch transport {
        case 0x11: 4
        case 0x21: 16
        case 0x00, 0x31: 0
        default: nil
        }
    }
}
