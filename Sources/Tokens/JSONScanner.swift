import Base

/// Walks a JSON object (RFC 8259) without making values of it, for claims that are read tens of thousands of times a
/// second.
///
/// It throws `Declined` for bytes that are not JSON, and for JSON that it does not have to know: white space, escapes,
/// fractions, exponents, numbers of more than 18 digits, objects of more than 32 members, deep nesting. Then its caller
/// uses `JSONValue`. If the scanner does not decline, `JSONValue` would read the same.
struct JSONScanner {
    struct Declined: Error {}

    /// A value, which points into the scanned text.
    enum Value {
        case text(UnsafeRawBufferPointer)
        case integer(Int64)
        /// From brace to brace.
        case object(UnsafeRawBufferPointer)
        /// An array, true, false or null.
        case other
    }

    typealias Visit = (_ name: UnsafeRawBufferPointer, _ value: Value) -> Void

    private static let membersMax = 32
    private static let depthMax = 8
    private static let digitsMax = 18

    private let bytes: UnsafeRawBufferPointer
    private var index = 0

    /// Calls `visit` for each member of the object in `bytes`.
    static func scan(_ bytes: UnsafeRawBufferPointer, _ visit: Visit) throws(Declined) {
        guard UTF8Validation.isText(bytes) else { throw Declined() }
        var scanner = JSONScanner(bytes: bytes)
        try scanner.members(depth: 1, visit)
        guard scanner.index == bytes.count else { throw Declined() }
    }

    private var next: UInt8 { index < bytes.count ? bytes[index] : 0 }

    private mutating func expect(_ byte: UInt8) throws(Declined) {
        guard next == byte else { throw Declined() }
        index += 1
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func members(depth: Int, _ visit: Visit) throws(Declined) {
        try expect(UInt8(ascii: "{"))
        if skip(UInt8(ascii: "}")) { return }
        var names = InlineArray<32, UnsafeRawBufferPointer>(repeating: UnsafeRawBufferPointer(start: nil, count: 0))
        var count = 0
        repeat {
            let name = try string()
            for place in 0..<count where names[place].hasSameBytes(as: name) { throw Declined() }
            guard count < Self.membersMax else { throw Declined() }
            names[count] = name
            count += 1
            try expect(UInt8(ascii: ":"))
            visit(name, try value(depth: depth))
        } while skip(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"))
    }

    private mutating func value(depth: Int) throws(Declined) -> Value {
        switch next {
        case UInt8(ascii: "\""): return .text(try string())
        case UInt8(ascii: "{"):
            guard depth < Self.depthMax else { throw Declined() }
            let start = index
            try members(depth: depth + 1) { _, _ in }
            return .object(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
        case UInt8(ascii: "["):
            guard depth < Self.depthMax else { throw Declined() }
            try elements(depth: depth + 1)
            return .other
        case UInt8(ascii: "t"): return try literal("true")
        case UInt8(ascii: "f"): return try literal("false")
        case UInt8(ascii: "n"): return try literal("null")
        default: return .integer(try integer())
        }
    }

    private mutating func elements(depth: Int) throws(Declined) {
        try expect(UInt8(ascii: "["))
        if skip(UInt8(ascii: "]")) { return }
        repeat { _ = try value(depth: depth) } while skip(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
    }

    private mutating func literal(_ word: StaticString) throws(Declined) -> Value {
        for offset in 0..<word.utf8CodeUnitCount { try expect(word.utf8Start[offset]) }
        return .other
    }

    /// The bytes between the quotes.
    private mutating func string() throws(Declined) -> UnsafeRawBufferPointer {
        try expect(UInt8(ascii: "\""))
        let start = index
        while index + 8 <= bytes.count {
            let special = Self.special(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian)
            index += special.trailingZeroBitCount / 8
            if special != 0 { break }
        }
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                index += 1
                return UnsafeRawBufferPointer(rebasing: bytes[start..<(index - 1)])
            }
            guard byte >= 0x20, byte != UInt8(ascii: "\\") else { throw Declined() }
            index += 1
        }
        throw Declined()
    }

    /// Has the highest bit set of the first byte, counted from the lowest, that is a quote, a backslash or below 0x20;
    /// of bytes behind it, perhaps falsely. Zero if there is none.
    @inline(__always)
    private static func special(_ word: UInt64) -> UInt64 {
        let quotes: UInt64 = 0x2222_2222_2222_2222
        let backslashes: UInt64 = 0x5C5C_5C5C_5C5C_5C5C
        // Without a borrow from a byte below, a byte less than n has its highest bit set after n is subtracted.
        func isBelow(_ eachN: UInt64, _ word: UInt64) -> UInt64 { (word &- eachN) & ~word }
        let controls = isBelow(0x2020_2020_2020_2020, word)
        let ends = isBelow(Self.ones, word ^ quotes) | isBelow(Self.ones, word ^ backslashes)
        return (controls | ends) & Self.ones << 7
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// `-? (0 | [1-9][0-9]*)`, but not -0.
    private mutating func integer() throws(Declined) -> Int64 {
        let isNegative = skip(UInt8(ascii: "-"))
        let start = index
        var value: Int64 = 0
        while next >= UInt8(ascii: "0"), next <= UInt8(ascii: "9") {
            guard index - start < Self.digitsMax else { throw Declined() }
            // Proof: at most 18 digits, which an Int64 holds.
            value = value * 10 + Int64(next - UInt8(ascii: "0"))
            index += 1
        }
        guard index > start, bytes[start] != UInt8(ascii: "0") || (index == start + 1 && !isNegative) else {
            throw Declined()
        }
        switch next {
        case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): throw Declined()
        default: return isNegative ? -value : value
        }
    }
}
