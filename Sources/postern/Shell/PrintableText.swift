extension Output {
    /// A name that an end user chose must not move the cursor of an admin's terminal.
    ///
    /// `keepsLines`: line feeds stay, as in a message of several lines.
    static func printable(_ text: String, keepsLines: Bool = false) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    isControl(scalar) && !(keepsLines && scalar == "\n") ? "\u{FFFD}" : scalar
                }))
    }

    /// JSON of the same value, with escapes for the control characters that JSON allows as they are.
    static func printable(json: [UInt8]) -> [UInt8] {
        // DEL, and the first byte of U+0080 to U+009F.
        guard json.contains(where: { $0 == 0x7F || $0 == 0xC2 }) else { return json }
        var printable: [UInt8] = []
        var rest = json[...]
        while let byte = rest.popFirst() {
            if byte == 0x7F {
                printable += [UInt8]("\\u007f".utf8)
            } else if byte == 0xC2, let second = rest.first, (0x80...0x9F).contains(second) {
                rest.removeFirst()
                printable += [UInt8]("\\u00\(String(second, radix: 16))".utf8)
            } else {
                printable.append(byte)
            }
        }
        return printable
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || (0x202A...0x202E).contains(scalar.value)
            || (0x2066...0x2069).contains(scalar.value)
    }
}
