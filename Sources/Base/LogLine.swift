/// The value of a field in a log line.
public enum LogValue: Sendable {
    case text(String)
    case integer(Int64)
}

/// Builds one line: `{"time_micros":…,"level":…,"message":…,…}` with everything outside printable ASCII escaped, values
/// cut at 512 UTF-16 units and never within a character.
public struct LogLine {
    private static let unitsMax = 512

    private var bytes: [UInt8] = []

    public init(time: Timestamp, level: String, message: String) {
        bytes.reserveCapacity(512)
        bytes.append(UInt8(ascii: "{"))
        append("time_micros", .integer(time.microseconds))
        append("level", .text(level))
        append("message", .text(message))
    }

    public mutating func append(_ key: String, _ value: LogValue) {
        append(key: key)
        switch value {
        case .text(let text): appendQuoted(text)
        case .integer(let number): bytes.append(contentsOf: "\(number)".utf8)
        }
    }

    /// The same for UTF-8 from outside, which is mostly ASCII and needs no escapes.
    public mutating func append(_ key: String, utf8: UnsafeRawBufferPointer) {
        let isPlain =
            utf8.count <= Self.unitsMax
            && utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
        guard isPlain else { return append(key, .text(String(decoding: utf8, as: UTF8.self))) }
        append(key: key)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: utf8)
        bytes.append(UInt8(ascii: "\""))
    }

    public mutating func append(_ key: String, _ text: Text) {
        text.bytes.withUnsafeBytes { append(key, utf8: $0) }
    }

    private mutating func append(key: String) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        appendQuoted(key)
        bytes.append(UInt8(ascii: ":"))
    }

    public mutating func finish() -> [UInt8] {
        bytes.append(contentsOf: "}\n".utf8)
        return bytes
    }

    private mutating func appendQuoted(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        var units = text.utf16.prefix(Self.unitsMax)
        if let last = units.last, UTF16.isLeadSurrogate(last) { units = units.dropLast() }
        for unit in units {
            switch unit {
            case 0x22: bytes.append(contentsOf: #"\""#.utf8)
            case 0x5C: bytes.append(contentsOf: #"\\"#.utf8)
            case 0x20...0x7E: bytes.append(UInt8(unit))
            default:
                let hex = String(unit, radix: 16)
                bytes.append(contentsOf: (#"\u"# + String(repeating: "0", count: 4 - hex.count) + hex).utf8)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
