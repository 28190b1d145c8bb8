public import Base

/// Appends JSON to an array of bytes: claims, key sets, log and CLI output.
///
/// The writer adds the commas, the caller names and brackets: an opened bracket must be closed, and one value must
/// follow a name. `bytes` may be taken at any time.
///
/// ```swift
/// var writer = JSONWriter()
/// writer.beginObject()
/// writer.name("iat")
/// writer.integer(now.seconds)
/// writer.endObject()
/// ```
public struct JSONWriter: Sendable {
    public private(set) var bytes: [UInt8]
    private let isPretty: Bool
    private var depth = 0
    private var needsComma = false
    private var isAfterName = false

    /// Continues after `bytes`, with nothing between them and the value. Reserve their capacity for speed.
    public init(appendingTo bytes: consuming [UInt8] = [], isPretty: Bool = false) {
        self.bytes = bytes
        self.isPretty = isPretty
    }

    public mutating func beginObject() { begin(UInt8(ascii: "{")) }
    public mutating func endObject() { end(UInt8(ascii: "}")) }
    public mutating func beginArray() { begin(UInt8(ascii: "[")) }
    public mutating func endArray() { end(UInt8(ascii: "]")) }

    /// A member's name that stands in the source.
    public mutating func name(_ name: StaticString) {
        separate()
        name.withUTF8Buffer { quote(UnsafeRawBufferPointer($0)) }
        finishName()
    }

    /// A member's name from elsewhere.
    public mutating func name(text: Text) {
        separate()
        text.bytes.withUnsafeBytes { quote($0) }
        finishName()
    }

    public mutating func null() { literal("null") }
    public mutating func bool(_ value: Bool) { literal(value ? "true" : "false") }

    public mutating func integer(_ value: Int64) {
        separate()
        var digits: InlineArray<20, UInt8> = .init(repeating: 0)
        var start = 20
        var rest = value.magnitude
        repeat {
            start -= 1
            digits[start] = UInt8(ascii: "0") + UInt8(rest % 10)
            rest /= 10
        } while rest > 0
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        for index in start..<20 { bytes.append(digits[index]) }
    }

    /// Must be finite: JSON has no other numbers. Reads back as the same Double.
    public mutating func double(_ value: Double) {
        precondition(value.isFinite, "\(value) cannot be written as JSON")
        separate()
        bytes.append(contentsOf: value.description.utf8)
    }

    public mutating func string(_ value: Text) { value.bytes.withUnsafeBytes { string($0) } }
    public mutating func string(_ value: String) { string(Text(unchecked: [UInt8](value.utf8))) }

    /// The bytes must be well-formed UTF-8: they are copied, except for characters that JSON requires to be escaped.
    public mutating func string(_ value: UnsafeRawBufferPointer) {
        separate()
        quote(value)
    }

    public mutating func value(_ value: JSONValue) {
        switch value {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .double(let value): double(value)
        case .string(let value): string(value)
        case .array(let elements):
            beginArray()
            for element in elements { self.value(element) }
            endArray()
        case .object(let members):
            beginObject()
            for member in members {
                name(text: member.name)
                self.value(member.value)
            }
            endObject()
        }
    }

    private mutating func literal(_ word: StaticString) {
        separate()
        word.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    private mutating func begin(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        depth += 1
        needsComma = false
    }

    private mutating func end(_ bracket: UInt8) {
        precondition(depth > 0 && !isAfterName, "a bracket is closed that is not open, or a name has no value")
        depth -= 1
        if isPretty && needsComma { startLine() }
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func finishName() {
        bytes.append(UInt8(ascii: ":"))
        if isPretty { bytes.append(UInt8(ascii: " ")) }
        isAfterName = true
    }

    /// Runs before every name and value: the comma and, for people, the line.
    private mutating func separate() {
        if isAfterName {
            isAfterName = false
        } else {
            if needsComma { bytes.append(UInt8(ascii: ",")) }
            if isPretty && depth > 0 { startLine() }
        }
        needsComma = true
    }

    private mutating func startLine() {
        bytes.append(UInt8(ascii: "\n"))
        for _ in 0..<depth { bytes.append(contentsOf: [0x20, 0x20]) }
    }

    /// RFC 8259 §7: the quotation mark, the backslash and everything below U+0020; runs between them are copied.
    private mutating func quote(_ raw: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        var copied = 0
        for index in 0..<raw.count {
            let byte = raw[index]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            bytes.append(contentsOf: raw[copied..<index])
            copied = index + 1
            appendEscape(of: byte)
        }
        bytes.append(contentsOf: raw[copied...])
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func appendEscape(of byte: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        case 0x0A: bytes.append(UInt8(ascii: "n"))
        case 0x0D: bytes.append(UInt8(ascii: "r"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        default:
            bytes.append(contentsOf: "u00".utf8)
            bytes.append(UInt8(ascii: "0") + byte >> 4)
            let low = byte & 15
            bytes.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }
}
