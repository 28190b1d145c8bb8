// Hex and base64 in both alphabets. The decoders are strict: they refuse text that a lenient decoder would repair.

import Glibc

public enum Hex {
    public static func encode(_ bytes: some Collection<UInt8>) -> Text {
        let contiguous = bytes.withContiguousStorageIfAvailable { encode(UnsafeRawBufferPointer($0)) }
        return contiguous ?? Array(bytes).withUnsafeBytes { encode($0) }
    }

    /// Returns nil for an odd length and for any character but 0-9, a-f and A-F.
    public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        let contiguous = text.withContiguousStorageIfAvailable { decode(UnsafeRawBufferPointer($0)) }
        return contiguous ?? Array(text).withUnsafeBytes { decode($0) }
    }

    // Concrete, because a generic body is not specialised across modules: every token's session id passes here.

    private static func encode(_ bytes: UnsafeRawBufferPointer) -> Text {
        Text(
            unchecked: [UInt8](capacity: bytes.count * 2) { text in
                for (index, byte) in bytes.enumerated() {
                    text[2 * index] = digit(byte >> 4)
                    text[2 * index + 1] = digit(byte & 15)
                }
                return bytes.count * 2
            })
    }

    private static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        for index in stride(from: 0, to: text.count, by: 2) {
            guard let high = value(of: text[index]), let low = value(of: text[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// The value of one hexadecimal digit, in either case.
    package static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// RFC 4648: `.url` is base64url without padding (RFC 7515 §2), `.standard` has padding.
///
/// Decoding refuses white space, the other alphabet's characters, wrong padding and non-zero unused bits, so that
/// every byte string has exactly one spelling.
public enum Base64: Sendable {
    case standard
    case url

    public func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let contiguous = bytes.withContiguousStorageIfAvailable { encode(UnsafeRawBufferPointer($0)) }
        return contiguous ?? Array(bytes).withUnsafeBytes { encode($0) }
    }

    public func encodeToString(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: encode(bytes), as: UTF8.self)
    }

    public func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        let contiguous = text.withContiguousStorageIfAvailable { decode(UnsafeRawBufferPointer($0)) }
        return contiguous ?? Array(text).withUnsafeBytes { decode($0) }
    }

    /// Lends the decoded bytes. They are not wiped: for signatures, which are no secret. Nil if `decode` returns nil.
    public func withDecoded<Result>(
        _ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        guard let digitCount = digitCount(of: text) else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: digitCount * 6 / 8, alignment: 16) { bytes in
            decode(text, digitCount: digitCount, into: bytes) ? body(UnsafeRawBufferPointer(bytes)) : nil
        }
    }

    // Concrete, because a generic body is not specialised across modules: every token passes here, whole.

    private func encode(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        let alphabet = self == .url ? Self.urlAlphabet : Self.standardAlphabet
        let digitCount = (bytes.count * 8 + 5) / 6
        let count = self == .url ? digitCount : (bytes.count + 2) / 3 * 4
        return [UInt8](capacity: count) { text in
            alphabet.withUnsafeBufferPointer { alphabet in
                // Three bytes are four digits.
                var index = 0
                var position = 0
                while position + 3 <= bytes.count {
                    let bits =
                        // Proof: a byte fits any integer.
                        UInt32(bytes[position]) << 16 | UInt32(bytes[position + 1]) << 8 | UInt32(bytes[position + 2])
                    text[index] = alphabet[Int(bits >> 18)]
                    text[index + 1] = alphabet[Int(bits >> 12 & 63)]
                    text[index + 2] = alphabet[Int(bits >> 6 & 63)]
                    text[index + 3] = alphabet[Int(bits & 63)]
                    position += 3
                    index += 4
                }
                var bits: UInt32 = 0
                var bitCount: UInt32 = 0
                while position < bytes.count {
                    // Proof: a byte fits any integer.
                    bits = bits << 8 | UInt32(bytes[position])
                    bitCount += 8
                    position += 1
                }
                // The last digit has zeroes behind the last byte.
                while index < digitCount {
                    text[index] = alphabet[Int((bitCount >= 6 ? bits >> (bitCount - 6) : bits << (6 - bitCount)) & 63)]
                    bitCount = bitCount >= 6 ? bitCount - 6 : 0
                    index += 1
                }
                while index < count {
                    text[index] = UInt8(ascii: "=")
                    index += 1
                }
            }
            return count
        }
    }

    /// The number of digits before the padding. Nil for wrong padding, and for a number of digits that is impossible.
    private func digitCount(of text: UnsafeRawBufferPointer) -> Int? {
        var digitCount = text.count
        if self == .standard {
            guard text.count.isMultiple(of: 4) else { return nil }
            while text.count - digitCount < 2, digitCount > 0, text[digitCount - 1] == UInt8(ascii: "=") {
                digitCount -= 1
            }
            guard text.count - digitCount == (4 - digitCount % 4) % 4 else { return nil }
        }
        return digitCount % 4 == 1 ? nil : digitCount
    }

    private func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard let digitCount = digitCount(of: text) else { return nil }
        var isSound = false
        let bytes = [UInt8](capacity: digitCount * 6 / 8) { bytes in
            isSound = decode(text, digitCount: digitCount, into: bytes)
            return bytes.count
        }
        return isSound ? bytes : nil
    }

    /// Fills `bytes`, which has room for exactly the digits. False if a character is no digit, or an unused bit is set.
    private func decode(
        _ text: UnsafeRawBufferPointer, digitCount: Int, into bytes: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let places = self == .url ? Self.urlPlaces : Self.standardPlaces
        let count = bytes.count
        return places.withUnsafeBufferPointer { places in
            var isSound = true
            var seen: UInt32 = 0
            /// The bits of up to four digits, as three bytes in the order of memory.
            func bits(_ position: Int, _ digitCount: Int) -> UInt32 {
                var bits: UInt32 = 0
                for place in 0..<digitCount { bits |= places[place << 8 | Int(text[position + place])] }
                seen |= bits
                return bits
            }
            var index = 0
            var position = 0
            // Four bytes are stored at once. The fourth is overwritten by the next step.
            while position + 4 <= digitCount, index + 4 <= count {
                bytes.storeBytes(of: bits(position, 4).littleEndian, toByteOffset: index, as: UInt32.self)
                position += 4
                index += 3
            }
            while position < digitCount {
                var rest = bits(position, min(4, digitCount - position))
                let byteCount = min(3, count - index)
                for _ in 0..<byteCount {
                    bytes[index] = UInt8(truncatingIfNeeded: rest)
                    rest >>= 8
                    index += 1
                }
                // The bits behind the last byte are zero.
                if byteCount < 3, rest & 0xFF != 0 { isSound = false }
                position += 4
            }
            return isSound && seen & Self.foreign == 0
        }
    }

    private static let common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    private static let standardAlphabet = [UInt8]((common + "+/").utf8)
    private static let urlAlphabet = [UInt8]((common + "-_").utf8)
    private static let standardPlaces = places(of: standardAlphabet)
    private static let urlPlaces = places(of: urlAlphabet)

    /// Marks a character that is no digit.
    private static let foreign: UInt32 = 1 << 31

    /// Four tables of 256 characters, one for each place in a group of four digits: the bits of the digit where they
    /// belong in the three bytes, of which the first one is the lowest.
    private static func places(of alphabet: [UInt8]) -> [UInt32] {
        var tables = [UInt32](repeating: foreign, count: 4 * 256)
        for (value, character) in alphabet.enumerated() {
            let (value, character) = (UInt32(value), Int(character))
            tables[character] = value << 2
            tables[256 + character] = value >> 4 | (value & 15) << 12
            tables[512 + character] = (value >> 2) << 8 | (value & 3) << 22
            tables[768 + character] = value << 16
        }
        return tables
    }
}

extension [UInt8] {
    /// The same bytes, in memory that no other array refers to.
    package func copied() -> [UInt8] { withUnsafeBytes { [UInt8]($0) } }

    /// Up to `capacity` bytes, written by `body`, which returns their number.
    ///
    /// `init(unsafeUninitializedCapacity:)` does the same, but looks for the array's type at run time: that costs more
    /// than to copy some hundred bytes. The memory that `body` writes is wiped: tokens and keys pass through it.
    public init(capacity: Int, writtenBy body: (UnsafeMutableRawBufferPointer) -> Int) {
        self = withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 16) { bytes in
            let count = body(bytes)
            defer { if let start = bytes.baseAddress { explicit_bzero(start, bytes.count) } }
            return [UInt8](UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
    }
}
