// The only JSON parser of Postern: RFC 8259 and nothing else, in one pass. It is pure and runs on the caller's thread.
// The grammar is here; strings and numbers are in JSONParser+Strings and JSONParser+Numbers.

import Base

/// Reads one value from front to back, and refuses everything for which it has no case.
///
/// `index` is the next byte to read. A method starts at it and leaves it after the bytes that it has read.
struct JSONParser {
    let bytes: UnsafeRawBufferPointer
    let maxDepth: Int
    var index = 0

    init(_ bytes: UnsafeRawBufferPointer, maxDepth: Int) {
        self.bytes = bytes
        self.maxDepth = maxDepth
    }

    mutating func document() throws(JSONError) -> JSONValue {
        let value = try value(depth: 0)
        skipWhiteSpace()
        guard index == bytes.count else { throw failure(.trailingBytes) }
        return value
    }

    /// The byte at `index`, or nil at the end. All reading goes through it, so that nothing is read past the input.
    var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    /// Recursion is bounded: `depth` arrays and objects are open, and at most `maxDepth` may be.
    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        skipWhiteSpace()
        guard let first = next else { throw failure(.incomplete) }
        switch first {
        case UInt8(ascii: "\""):
            index += 1
            return .string(try string())
        case UInt8(ascii: "{"):
            try enter(depth)
            return .object(try members(depth: depth + 1))
        case UInt8(ascii: "["):
            try enter(depth)
            return .array(try elements(depth: depth + 1))
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: throw failure(.malformed)
        }
    }

    private mutating func enter(_ depth: Int) throws(JSONError) {
        guard depth < maxDepth else { throw failure(.tooDeep) }
        index += 1
    }

    private mutating func elements(depth: Int) throws(JSONError) -> [JSONValue] {
        var elements: [JSONValue] = []
        if skip(UInt8(ascii: "]")) { return elements }
        repeat { elements.append(try value(depth: depth)) } while try goesOn(until: UInt8(ascii: "]"))
        return elements
    }

    private mutating func members(depth: Int) throws(JSONError) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = []
        if skip(UInt8(ascii: "}")) { return members }
        // Most objects have a few members: one allocation instead of four that grow.
        members.reserveCapacity(8)
        var names = MemberNames()
        repeat {
            try expect(UInt8(ascii: "\""))
            let start = index - 1
            let name = try string()
            guard names.insert(name, after: members) else { throw failure(.duplicateMember, at: start) }
            try expect(UInt8(ascii: ":"))
            members.append(JSONValue.Member(name, try value(depth: depth)))
        } while try goesOn(until: UInt8(ascii: "}"))
        return members
    }

    /// After an element: true at a comma, false at the closing bracket.
    private mutating func goesOn(until bracket: UInt8) throws(JSONError) -> Bool {
        if skip(UInt8(ascii: ",")) { return true }
        try expect(bracket)
        return false
    }

    private mutating func literal(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for offset in 0..<word.utf8CodeUnitCount {
            guard next == word.utf8Start[offset] else { throw failure(next == nil ? .incomplete : .malformed) }
            index += 1
        }
        return value
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard skip(byte) else { throw failure(next == nil ? .incomplete : .malformed) }
    }

    /// Skips white space and, if it comes next, `byte`. Returns whether it came.
    private mutating func skip(_ byte: UInt8) -> Bool {
        skipWhiteSpace()
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipWhiteSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    /// Lines are counted only here, because only an error needs them.
    func failure(_ reason: JSONError.Reason, at place: Int? = nil) -> JSONError {
        let before = bytes[..<(place ?? index)]
        let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        return JSONError(reason: reason, line: 1 + before.count { $0 == 0x0A }, column: before.endIndex - lineStart)
    }
}

/// Finds a second member of the same name, never in quadratic time.
private struct MemberNames {
    /// Empty while comparing one by one is cheaper.
    private var known: Set<Text> = []
    private static let comparedMax = 16

    /// False if one of `members` has that name. It must have been called with the name of each of them.
    mutating func insert(_ name: Text, after members: [JSONValue.Member]) -> Bool {
        if members.count < Self.comparedMax { return !members.contains { $0.name == name } }
        if members.count == Self.comparedMax { known = Set(members.map(\.name)) }
        return known.insert(name).inserted
    }
}
