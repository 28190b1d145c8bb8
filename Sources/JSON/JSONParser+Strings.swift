import Base

extension JSONParser {
    /// Reads the string after an opening quotation mark, including the closing one.
    mutating func string() throws(JSONError) -> Text {
        let start = index
        var seen: UInt8 = 0
        while let byte = next {
            if byte == UInt8(ascii: "\"") {
                let raw = UnsafeRawBufferPointer(rebasing: bytes[start..<index])
                guard seen < 0x80 || UTF8Validation.isText(raw) else { throw failure(.notUTF8, at: start) }
                index += 1
                return Text(unchecked: [UInt8](raw))
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
            guard byte >= 0x20 else { throw failure(byte == 0 ? .containsNUL : .malformed) }
            seen |= byte
            index += 1
        }
        throw failure(.incomplete)
    }

    /// The rare case, at the first backslash: the string differs from its bytes in the input.
    private mutating func escapedString(from start: Int) throws(JSONError) -> Text {
        var content = [UInt8](bytes[start..<index])
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = Text(validating: content) else { throw failure(.notUTF8, at: start) }
                index += 1
                return text
            case UInt8(ascii: "\\"):
                index += 1
                try appendEscaped(to: &content)
            case ..<0x20: throw failure(byte == 0 ? .containsNUL : .malformed)
            default:
                content.append(byte)
                index += 1
            }
        }
        throw failure(.incomplete)
    }

    /// Reads the characters after a backslash.
    private mutating func appendEscaped(to content: inout [UInt8]) throws(JSONError) {
        guard let letter = next else { throw failure(.incomplete) }
        index += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(letter)
        case UInt8(ascii: "b"): content.append(0x08)
        case UInt8(ascii: "f"): content.append(0x0C)
        case UInt8(ascii: "n"): content.append(0x0A)
        case UInt8(ascii: "r"): content.append(0x0D)
        case UInt8(ascii: "t"): content.append(0x09)
        case UInt8(ascii: "u"): content.append(contentsOf: Unicode.UTF8.encode(try escapedScalar())!)
        default: throw failure(.malformed, at: index - 1)
        }
    }

    /// Reads the characters after `\u`: four hex digits, or two such escapes that are a surrogate pair.
    private mutating func escapedScalar() throws(JSONError) -> Unicode.Scalar {
        let start = index - 2
        let unit = try codeUnit()
        guard unit != 0 else { throw failure(.containsNUL, at: start) }
        if let scalar = Unicode.Scalar(unit) { return scalar }
        guard UTF16.isLeadSurrogate(unit) else { throw failure(.malformed, at: start) }
        for expected in [UInt8(ascii: "\\"), UInt8(ascii: "u")] {
            guard next == expected else { throw failure(next == nil ? .incomplete : .malformed, at: start) }
            index += 1
        }
        let trail = try codeUnit()
        guard UTF16.isTrailSurrogate(trail) else { throw failure(.malformed, at: start) }
        // Ten bits of each, above the basic plane: the result is never a surrogate and never past U+10FFFF.
        return Unicode.Scalar(0x1_0000 + (UInt32(unit) & 0x3FF) << 10 + (UInt32(trail) & 0x3FF))!
    }

    private mutating func codeUnit() throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = next else { throw failure(.incomplete) }
            guard let digit = Self.hexDigit(byte) else { throw failure(.malformed) }
            unit = unit << 4 | digit
            index += 1
        }
        return unit
    }

    private static func hexDigit(_ byte: UInt8) -> UInt16? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }
}
