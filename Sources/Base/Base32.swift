/// RFC 4648 §6 in capital letters, without padding: the form that people type and authenticator apps read.
public enum Base32 {
    private static let alphabet = [UInt8]("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    public static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 8 + 4) / 5)
        var (pending, bitCount): (UInt32, UInt32) = (0, 0)
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bitCount += 8
            while bitCount >= 5 {
                bitCount -= 5
                text.append(alphabet[Int(pending >> bitCount & 31)])
            }
            pending &= (1 << bitCount) - 1
        }
        if bitCount > 0 { text.append(alphabet[Int(pending << (5 - bitCount) & 31)]) }
        return text
    }

    /// Whether a character, in capitals, belongs to the alphabet.
    public static func contains(_ character: UInt8) -> Bool { alphabet.contains(character) }
}
