public import Base

/// An email address: as typed for sending, canonical for comparing.
///
/// 254 bytes at most (RFC 5321 §4.5.3.1.3 less the angle brackets), one "@" with something on both sides; ASCII, or
/// with `Form.international` UTF-8 (RFC 6531). Canonical means A-Z lower-cased and nothing else: no dot or plus rules,
/// and no Unicode case mapping, which would make the Kelvin sign a "k" and let one person's address become another's.
public struct Email: Sendable, Hashable {
    /// The addresses that are accepted from outside.
    ///
    /// An address that enters an account follows the tenant's setting (`TenantSettings.emailForm`), and its domain has
    /// one spelling (`EmailDomain`). An address that only finds an account may have any form (`toFind`): accounts keep
    /// the addresses that were accepted before, their users sign in with them, and nobody can see whether there are
    /// such accounts.
    public enum Form: Sendable {
        case ascii, international, toFind

        public func admits(_ email: Email) -> Bool {
            switch self {
            case .ascii:
                !email.isInternational && EmailDomain.isAcceptable(in: email.canonical, mayBeEncoded: true)
            case .international: EmailDomain.isAcceptable(in: email.canonical, mayBeEncoded: false)
            case .toFind: true
            }
        }
    }

    /// The address as it was typed, to which mail is sent.
    public let address: Text
    /// The form that is compared, hashed and stored as a key.
    public let canonical: Text

    /// An address from outside; nil when it is not acceptable.
    public init?(_ text: Text, form: Form, limits: Limits = Self.standardLimits) {
        self.init(text, byteCountMax: limits.emailMax)
        guard form.admits(self), !isInternational || InternationalEmail.isAcceptable(text) else { return nil }
    }

    /// An address that was accepted before. It is not judged again: another version of Unicode, or another setting of
    /// the tenant, must not leave an account without its email.
    public init?(stored text: Text) { self.init(text, byteCountMax: Self.standardLimits.emailMax) }

    /// Kept, because making two kilobytes of limits takes longer than judging an address.
    public static let standardLimits = Limits()

    private init?(_ text: Text, byteCountMax: Int) {
        guard (3...byteCountMax).contains(text.byteCount) else { return nil }
        var atCount = 0
        for byte in text.bytes {
            guard byte > 0x20, byte != 0x7F, !Self.isRefused(byte) else { return nil }
            if byte == UInt8(ascii: "@") { atCount += 1 }
        }
        guard atCount == 1, text.bytes.first != UInt8(ascii: "@"), text.bytes.last != UInt8(ascii: "@") else {
            return nil
        }
        guard let at = text.bytes.firstIndex(of: UInt8(ascii: "@")), at <= 64 else { return nil }
        self.address = text
        self.canonical = Text(unchecked: text.bytes.lowercasedASCII)
    }

    public var isInternational: Bool { address.bytes.contains { $0 >= 0x80 } }

    /// Characters that only occur quoted in an address and are used to smuggle a second one: RFC 5322 specials.
    @inline(__always)
    private static func isRefused(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "["),
            UInt8(ascii: "]"), UInt8(ascii: ":"), UInt8(ascii: ";"), UInt8(ascii: ","), UInt8(ascii: "\\"),
            UInt8(ascii: "\""):
            true
        default: false
        }
    }

    public static func == (left: Email, right: Email) -> Bool { left.canonical == right.canonical }
    public func hash(into hasher: inout Hasher) { hasher.combine(canonical) }
}
