import Base

/// Values that nobody should send in a field, by the field's kind.
enum HostileValues {
    typealias Value = WireValue

    /// Values small enough to be tried in every way; `huge` comes once per field.
    static func of(_ field: ProtobufSchema.Field) -> [[Value]] {
        let single: [Value] =
            switch field.kind {
            case .integer(let bits, _, let isZigzag): integers(bits: bits, isZigzag: isZigzag)
            case .fixed(let bits): fixed.map { .fixed($0, bits: bits) }
            case .bool: [.varint(0), .varint(1), .varint(2), .varint(.max)]
            case .enumeration: [0, 1, 2, 7, 99, -1, Int64(Int32.max), Int64(Int32.min)].map { signed($0) }
            case .text: texts.map { .bytes($0) }
            case .bytes: (texts + blobs).map { .bytes($0) }
            case .message: [.bytes([]), .bytes(deep), .bytes([0xFF]), .bytes([0x08, 0x01]), .varint(1)]
            }
        let repeatedly = [single.first].compactMap { $0 }.flatMap { first in
            field.isRepeated ? [1_000, 1_025, 20_000].map { Array(repeating: first, count: $0) } : [[first, first]]
        }
        return [[]] + single.map { [$0] } + repeatedly
    }

    /// A value above every limit that still fits in a frame; nil if the kind has none. `index` makes neighbours differ.
    static func huge(_ field: ProtobufSchema.Field, _ index: Int) -> [Value]? {
        switch field.kind {
        case .text, .bytes: [.bytes(huges[index % huges.count])]
        default: nil
        }
    }

    private static func signed(_ value: Int64) -> Value { .varint(UInt64(bitPattern: value)) }

    private static func integers(bits: Int, isZigzag: Bool) -> [Value] {
        let values: [Int64] = [
            0, 1, -1, 2, 59, 60, 300, 301, 1_000, 1_001, 86_400, Int64(Int32.max), Int64(Int32.min),
            Int64(Int32.max) + 1, Int64(Int32.min) - 1, 1 << 53, .max / 1_000_000, .max / 1_000_000 + 1, .max - 1, .max,
            .min + 1, .min,
        ]
        return values.filter { bits == 64 || Int32(exactly: $0) != nil }.map { value in
            isZigzag ? signed(value << 1 ^ value >> 63) : signed(value)
        }
    }

    private static let fixed: [UInt64] = [0, 1, .max, 1 << 63, 1 << 31, 0x7FF0_0000_0000_0000, 0x7FF8_0000_0000_0000]

    private static func repeated(_ text: String, _ byteCount: Int) -> [UInt8] {
        let unit = [UInt8](text.utf8)
        return Array(Array(repeating: unit, count: byteCount / unit.count + 1).joined().prefix(byteCount))
    }

    private static let marks = "\u{301}\u{316}"

    /// Lengths at and around the limits, then texts with a meaning for some parser, then bytes that are no text.
    private static let texts: [[UInt8]] =
        [0, 1, 3, 4, 5, 6, 16, 35, 36, 64, 65, 128, 129, 254, 255, 256, 257, 512, 513, 1_000, 1_001, 1_024, 1_025]
        .map { [UInt8](repeating: 0x61, count: $0) }
        + [2_048, 2_049, 4_096, 4_097, 8_192, 8_193, 16_385, 32_769, 65_536].map { [UInt8](repeating: 0x61, count: $0) }
        + [
            "\u{600}<b>", "e\u{301}", "\u{212B}", "\u{FEFF}a", "\u{202E}a\u{2066}", "\u{2028}\u{85}", "\u{FFFE}",
            "\u{10FFFF}",
            "a@b", "@", "A@EXAMPLE.COM", "\u{212A}@example.com", "a@example.com\u{301}", "https://", "https:///x",
            "https://a:99999", "http://127.0.0.1:1/", "javascript:1", "%LINK%", "%00", "../../etc/passwd", "-1",
            "9223372036854775808", "1e999", "{}", "null", "[1]", "{\"a\":1,\"a\":2}", "{\"sub\":1e400}",
            "$argon2id$v=19$m=1",
            "$2b$31$", "=?utf-8?B?", "::1", "fe80::1%eth0", "255.255.255.256", "2026-13-45", "a.b.c", "..", "Bearer ",
        ].map { [UInt8]($0.utf8) }
        + [
            repeated(marks, 4_096), repeated("%LINK%", 30_000), repeated("[", 5_000), repeated("{\"a\":", 5_000),
            repeated("%41", 3_000), repeated(",", 3_000), repeated(".", 8_000), repeated("\u{FDFA}", 3_000), [0],
            [0x61, 0],
            [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x61, 0xCC],
        ]

    private static let blobs: [[UInt8]] = [
        [UInt8](repeating: 0, count: 16), [UInt8](repeating: 0xFF, count: 16), [UInt8](repeating: 0, count: 32),
        [0x30, 0x82, 0xFF, 0xFF], [UInt8]("-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n".utf8),
        [UInt8]("{\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"}".utf8), [UInt8]("{\"kty\":\"EC\",\"crv\":\"P-256\"}".utf8),
    ]

    /// Messages within messages within unknown fields.
    private static let deep: [UInt8] = (0..<200).reduce([0x08, 0x01]) { inner, _ in
        inner.count < 128
            ? [0x7A, UInt8(inner.count)] + inner
            : [0x7A, UInt8(inner.count & 0x7F) | 0x80, UInt8(inner.count >> 7)] + inner
    }

    private static let huges: [[UInt8]] = [
        [UInt8](repeating: 0x61, count: (1 << 20) + 1), repeated(marks, (1 << 20) + 1 & ~3),
        [UInt8](repeating: 0x61, count: 4_000_000), repeated("{\"a\":", 1 << 20), repeated("\u{600}<", (1 << 20) + 2),
        repeated("%LINK%", (1 << 20) + 2),
    ]
}
