/// Well-formedness of UTF-8 (Unicode 15, table 3-7), plus our own rule: no NUL.
public enum UTF8Validation {
    public static func isText(_ raw: UnsafeRawBufferPointer) -> Bool {
        guard let start = raw.baseAddress else { return true }
        var index = plainPrefix(start, raw.count)
        let count = raw.count
        while index < count {
            if index + 8 <= count {
                if isPlain(raw.loadUnaligned(fromByteOffset: index, as: UInt64.self)) {
                    index += 8
                    continue
                }
            } else if let last = lastEightBytes(of: raw), isPlain(last) {
                return true
            }
            guard let width = scalarWidth(raw, at: index) else { return false }
            index += width
        }
        return true
    }

    /// How many bytes at the start, in steps of 32, are ASCII without NUL: long texts are tokens and JSON.
    @inline(__always)
    private static func plainPrefix(_ start: UnsafeRawPointer, _ count: Int) -> Int {
        var index = 0
        while count - index >= 32 {
            let words = start + index
            let marked =
                marked(words.loadUnaligned(as: UInt64.self))
                | marked(words.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                | marked(words.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
                | marked(words.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
            guard marked & Self.highestBits == 0 else { break }
            index += 32
        }
        return index
    }

    /// Eight ASCII bytes: none above 0x7F, none zero.
    @inline(__always)
    private static func isPlain(_ word: UInt64) -> Bool { marked(word) & highestBits == 0 }

    private static var highestBits: UInt64 { 0x8080_8080_8080_8080 }

    /// Has the highest bit of some byte set exactly if a byte is above 0x7F, or zero. Subtracting one from each byte
    /// turns the lowest zero into 0xFF. Without a zero, no byte borrows from its neighbour.
    @inline(__always)
    private static func marked(_ word: UInt64) -> UInt64 { word | (word &- 0x0101_0101_0101_0101) }

    /// The last eight bytes. If there are only four to seven, some of them occur twice. Nil for fewer than four.
    @inline(__always)
    private static func lastEightBytes(of raw: UnsafeRawBufferPointer) -> UInt64? {
        if raw.count >= 8 { return raw.loadUnaligned(fromByteOffset: raw.count - 8, as: UInt64.self) }
        guard raw.count >= 4 else { return nil }
        let first = raw.loadUnaligned(as: UInt32.self)
        let last = raw.loadUnaligned(fromByteOffset: raw.count - 4, as: UInt32.self)
        return UInt64(truncatingIfNeeded: first) << 32 | UInt64(truncatingIfNeeded: last)
    }

    private static func scalarWidth(_ raw: UnsafeRawBufferPointer, at index: Int) -> Int? {
        let lead = raw[index]
        func continuation(_ offset: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
            index + offset < raw.count && range.contains(raw[index + offset])
        }
        switch lead {
        case 0x01...0x7F: return 1
        case 0xC2...0xDF: return continuation(1) ? 2 : nil
        case 0xE0: return continuation(1, 0xA0...0xBF) && continuation(2) ? 3 : nil
        case 0xED: return continuation(1, 0x80...0x9F) && continuation(2) ? 3 : nil
        case 0xE1...0xEF: return continuation(1) && continuation(2) ? 3 : nil
        case 0xF0: return continuation(1, 0x90...0xBF) && continuation(2) && continuation(3) ? 4 : nil
        case 0xF1...0xF3: return continuation(1) && continuation(2) && continuation(3) ? 4 : nil
        case 0xF4: return continuation(1, 0x80...0x8F) && continuation(2) && continuation(3) ? 4 : nil
        default: return nil
        }
    }
}
