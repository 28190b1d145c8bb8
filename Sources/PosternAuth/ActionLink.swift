import Base

/// A link out of a mail: `…?mode=signIn&oobCode=…&tenantId=…&continueUrl=…`, perhaps inside another link's `link`.
struct ActionLink {
    let mode: String?
    let code: String?

    init(_ link: String) {
        var values = Self.query(of: link)
        // Firebase wraps the link in one that opens the application.
        if values["oobCode"] == nil, let inner = values["link"] ?? values["deep_link_id"] {
            values = Self.query(of: inner)
        }
        mode = values["mode"]
        code = values["oobCode"]
    }

    /// The code of what a person pasted: a link with a code, or the bare code.
    static func code(in text: String) -> String {
        if let code = ActionLink(text).code { return code }
        return text.utf8.contains { "?&=/:".utf8.contains($0) } ? "" : text
    }

    /// The first value of each name; what is not well-formed is left out.
    private static func query(of link: String) -> [String: String] {
        guard let mark = link.utf8.firstIndex(of: UInt8(ascii: "?")) else { return [:] }
        var values: [String: String] = [:]
        let query = link[link.utf8.index(after: mark)...].prefix { $0 != "#" }
        for pair in query.split(separator: "&") {
            guard let equals = pair.firstIndex(of: "="), let name = decoded(pair[..<equals]), values[name] == nil,
                let value = decoded(pair[pair.index(after: equals)...])
            else { continue }
            values[name] = value
        }
        return values
    }

    /// Percent-decoding (RFC 3986 §2.1); nil when it is malformed or the result is no text.
    private static func decoded(_ encoded: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = encoded.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return Text(validating: bytes)?.string
    }

    private static func hexValue(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
