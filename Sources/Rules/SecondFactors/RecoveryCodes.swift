public import Base

/// Codes that a user keeps on paper and shows once each in the place of a lost second factor. Pure.
///
/// A code is 50 random bits in base32, for example `k3vq2-7mzdp`. The store has HMACs of them.
public enum RecoveryCodes {
    /// How many codes a user is given at once.
    public static let count = 10
    private static let characterCount = 10
    private static let typedByteCountMax = 64

    public static func make(_ random: RandomSource) -> [Secret] {
        (0..<count).map { _ in
            let text = Base32.encode(random.bytes(7)).prefix(characterCount).map { $0 | 0x20 }
            return Secret(text.prefix(5) + [UInt8(ascii: "-")] + text.suffix(5))
        }
    }

    /// A code as it was typed, in its one form; nil for a text that cannot be a code. Case, spaces and hyphens do not
    /// matter.
    public static func canonical(_ typed: Secret) -> [UInt8]? {
        guard typed.byteCount <= typedByteCountMax else { return nil }
        let text = typed.withBytes { bytes in
            bytes.compactMap { byte -> UInt8? in
                switch byte {
                case UInt8(ascii: " "), UInt8(ascii: "-"): nil
                case UInt8(ascii: "a")...UInt8(ascii: "z"): byte & 0xDF
                default: byte
                }
            }
        }
        return text.count == characterCount && text.allSatisfy(Base32.contains) ? text : nil
    }
}
