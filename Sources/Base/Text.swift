import Glibc

/// Text from outside: well-formed UTF-8 without NUL, compared byte by byte.
///
/// `String ==` is canonical equivalence, so two different byte sequences can be "equal"; identity in Postern is
/// bytes. `Text` is what the wire, the store and every key use; `string` is for people (log, CLI).
public struct Text: Sendable, Hashable, Comparable {
    public let bytes: [UInt8]

    public static var empty: Text { Text(unchecked: []) }

    /// Copies `raw`, or returns nil when it holds a NUL or is not well-formed UTF-8 (RFC 3629: no surrogates, no
    /// over-long forms).
    public init?(validating raw: UnsafeRawBufferPointer) {
        guard UTF8Validation.isText(raw) else { return nil }
        self.bytes = [UInt8](raw)
    }

    /// The same rules over an array.
    public init?(validating bytes: [UInt8]) {
        guard bytes.withUnsafeBytes({ UTF8Validation.isText($0) }) else { return nil }
        self.bytes = bytes
    }

    /// A `String` is UTF-8 already; a NUL in it is our own mistake and traps.
    public init(_ string: String) {
        self.bytes = [UInt8](string.utf8)
        precondition(!bytes.contains(0), "NUL in a Text")
    }

    /// Wraps bytes that this process made itself and knows to be UTF-8 without NUL.
    public init(unchecked bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// All bytes at once: an array of bytes is hashed one by one.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes.count)
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    public var isEmpty: Bool { bytes.isEmpty }
    public var byteCount: Int { bytes.count }

    /// For people: log lines, CLI output, JSON. Never for comparing.
    public var string: String { String(decoding: bytes, as: UTF8.self) }

    public static func < (left: Text, right: Text) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }
}

extension Text: ExpressibleByStringLiteral, CustomStringConvertible {
    public init(stringLiteral value: StaticString) {
        self.init(unchecked: value.withUTF8Buffer { [UInt8]($0) })
    }

    public var description: String { string }
}

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

extension Text {
    /// Whether the bytes of `part` occur; searching a `String` would link the engine of regular expressions.
    public func contains(_ part: StaticString) -> Bool {
        part.withUTF8Buffer { part in
            bytes.withUnsafeBytes { $0.holds(UnsafeRawBufferPointer(part)) }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The place of the first such byte at `start` or behind it; nil if there is none, or nothing stands there.
    public func place(of byte: UInt8, from start: Int) -> Int? {
        guard start < count, let base = baseAddress,
            let found = memchr(base + start, Int32(byte), count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    /// Whether the bytes of `part` occur.
    fileprivate func holds(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let first = part.first else { return true }
        var start = 0
        while let found = place(of: first, from: start), count - found >= part.count {
            if UnsafeRawBufferPointer(rebasing: self[found..<found + part.count]).hasSameBytes(as: part) { return true }
            start = found + 1
        }
        return false
    }
}

extension UnsafeRawBufferPointer {
    /// Whether both hold the same bytes. For secrets, use `constantTimeEqual`.
    ///
    /// Inlined up to the comparison of lengths, in which most names differ.
    @inlinable
    public func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        count == other.count && hasSameContent(as: other)
    }

    /// `other` has the same length.
    @usableFromInline
    func hasSameContent(as other: UnsafeRawBufferPointer) -> Bool {
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }
}
