/// Encoded fields written by hand, right or wrong, without the code under test.
enum EncodedBytes {
    static func varint(_ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    static func tag(_ number: UInt64, _ wireType: UInt64) -> [UInt8] { varint(number << 3 | wireType) }

    static func bytes(_ number: UInt64, _ content: [UInt8]) -> [UInt8] {
        tag(number, 2) + varint(UInt64(content.count)) + content
    }

    static func text(_ number: UInt64, _ content: String) -> [UInt8] { bytes(number, [UInt8](content.utf8)) }

    static func integer(_ number: UInt64, _ value: UInt64) -> [UInt8] { tag(number, 0) + varint(value) }
}
