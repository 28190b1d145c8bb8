/// The addresses that begin with the same bits: `192.0.2.0/24`, `2001:db8::/32`, or one address.
public struct IPNetwork: Sendable, Equatable, CustomStringConvertible {
    public let address: IPAddress
    public let bitCount: Int

    /// Nil for other text, and for an address with bits set after the prefix: such text is probably a mistake.
    public init?(_ text: String) {
        // Not bytes: IPAddress and the digits below take nothing but ASCII.
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = parts.first.flatMap({ IPAddress(String($0)) }) else { return nil }
        let most = address.bytes.count * 8
        var bitCount = most
        if parts.count == 2 {
            let isPlain = parts[1].utf8.allSatisfy(\.isASCIIDigit)
            guard isPlain, let number = Int(parts[1]), number <= most else { return nil }
            bitCount = number
        }
        let isClean = (bitCount..<most).allSatisfy { !Self.bit($0, of: address) }
        guard isClean, address.withoutMapping == address else { return nil }
        self.address = address
        self.bitCount = bitCount
    }

    /// An IPv6 address that stands for an IPv4 address counts as that IPv4 address.
    public func contains(_ other: IPAddress) -> Bool {
        let other = other.withoutMapping
        guard other.bytes.count == address.bytes.count else { return false }
        return (0..<bitCount).allSatisfy { Self.bit($0, of: address) == Self.bit($0, of: other) }
    }

    /// Whether every address of `other` is in here.
    public func contains(_ other: IPNetwork) -> Bool { other.bitCount >= bitCount && contains(other.address) }

    private static func bit(_ index: Int, of address: IPAddress) -> Bool {
        address.bytes[index / 8] & (0x80 >> (index % 8)) != 0
    }

    public var description: String { "\(address)/\(bitCount)" }
}
