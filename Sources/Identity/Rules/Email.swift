public import Base

/// An email address: as typed for sending, canonical for comparing.
///
/// ASCII only, 254 bytes at most (RFC 5321 §4.5.3.1.3 less the angle brackets), one "@" with something on both sides.
/// Canonical means A-Z lower-cased and nothing else: no dot or plus rules, and no Unicode case mapping, which would
/// make the Kelvin sign a "k" and let one person's address become another's.
public struct Email: Sendable, Hashable {
    /// As typed; mail goes here.
    public let address: Text
    /// What is compared, hashed and stored as a key.
    public let canonical: Text

    /// Nil when `text` is no address we accept.
    public init?(_ text: Text, limits: Limits = Limits()) {
        guard (3...limits.emailMax).contains(text.byteCount) else { return nil }
        var atCount = 0
        var canonical: [UInt8] = []
        canonical.reserveCapacity(text.byteCount)
        for byte in text.bytes {
            guard (0x21...0x7E).contains(byte), !Self.refused.contains(byte) else { return nil }
            if byte == UInt8(ascii: "@") { atCount += 1 }
            canonical.append(byte >= 0x41 && byte <= 0x5A ? byte + 0x20 : byte)
        }
        guard atCount == 1, text.bytes.first != UInt8(ascii: "@"), text.bytes.last != UInt8(ascii: "@") else {
            return nil
        }
        guard let at = text.bytes.firstIndex(of: UInt8(ascii: "@")), at <= 64 else { return nil }
        self.address = text
        self.canonical = Text(unchecked: canonical)
    }

    /// Characters that only occur quoted in an address and are used to smuggle a second one: RFC 5322 specials.
    private static let refused = Set("()<>[]:;,\\\"".utf8)

    public static func == (left: Email, right: Email) -> Bool { left.canonical == right.canonical }
    public func hash(into hasher: inout Hasher) { hasher.combine(canonical) }
}
