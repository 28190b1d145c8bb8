/// The part of ITU-T X.690 that keys and signatures need: writing definite lengths and unsigned integers.
enum DER {
    static let sequenceTag: UInt8 = 0x30

    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var lengthBytes: [UInt8] = []
        if content.count < 0x80 {
            lengthBytes = [UInt8(content.count)]
        } else {
            var rest = content.count
            while rest > 0 {
                lengthBytes.insert(UInt8(rest & 0xFF), at: 0)
                rest >>= 8
            }
            lengthBytes.insert(0x80 | UInt8(lengthBytes.count), at: 0)
        }
        return [tag] + lengthBytes + content
    }

    static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(sequenceTag, Array(elements.joined())) }

    /// INTEGER of big-endian digits: the shortest spelling, never negative.
    static func integer(_ digits: some Collection<UInt8>) -> [UInt8] {
        let significant = digits.drop { $0 == 0 }
        let needsZero = (significant.first ?? 0x80) >= 0x80
        return element(0x02, (needsZero ? [0] : []) + significant)
    }

    /// BIT STRING of whole bytes.
    static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }
}
