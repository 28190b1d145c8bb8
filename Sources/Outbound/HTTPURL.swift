public import Base

/// An absolute `https://` or `http://` URL, as strict as endpoints are: printable ASCII, a host, no user information,
/// no fragment, at most 2,048 bytes.
public struct HTTPURL: Sendable, Hashable {
    public let text: Text
    public let isPlaintext: Bool

    public static let byteCountMax = 2_048

    public init?(_ text: Text) {
        let bytes = text.bytes
        guard bytes.count <= Self.byteCountMax, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        // Bytes on which parsers of URLs differ, and a fragment, which no server ever gets.
        guard !bytes.contains(where: { Self.refused.contains($0) }) else { return nil }
        let isPlaintext = bytes.starts(with: "http://".utf8)
        guard isPlaintext || bytes.starts(with: "https://".utf8) else { return nil }
        let rest = bytes.dropFirst(isPlaintext ? 7 : 8)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        guard Self.isAuthority(authority) else { return nil }
        self.text = text
        self.isPlaintext = isPlaintext
    }

    /// With `name=value` behind what the query has already, both percent-encoded.
    public func with(query name: Text, _ value: Text) -> HTTPURL? {
        let separator: Text = text.bytes.contains(UInt8(ascii: "?")) ? "&" : "?"
        let pair = PercentEncoding.encode(name) + [UInt8(ascii: "=")] + PercentEncoding.encode(value)
        return HTTPURL(Text(unchecked: text.bytes + separator.bytes + pair))
    }

    private static let refused = [UInt8]("\\\"<>^`{|}#".utf8)

    /// `host`, `host:port`, `[v6]` or `[v6]:port`; libcurl judges the rest.
    private static func isAuthority(_ authority: ArraySlice<UInt8>) -> Bool {
        var host = authority
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { return false }
            host = authority[(authority.startIndex + 1)..<end]
            guard !host.isEmpty, host.allSatisfy(isHexOrColonOrDot) else { return false }
            return isPort(authority[(end + 1)...])
        }
        if let colon = authority.firstIndex(of: UInt8(ascii: ":")) {
            guard isPort(authority[colon...]) else { return false }
            host = authority[..<colon]
        }
        return (1...253).contains(host.count) && host.allSatisfy(isHostByte)
    }

    private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first else { return true }
        let digits = text.dropFirst()
        guard first == UInt8(ascii: ":"), (1...5).contains(digits.count) else { return false }
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
        return (1...65_535).contains(digits.reduce(0) { $0 * 10 + Int($1 - 0x30) })
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func isHexOrColonOrDot(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

/// application/x-www-form-urlencoded: the unreserved characters stay (RFC 3986 §2.3), everything else is `%XX`.
public enum PercentEncoding {
    public static func encode(_ text: Text) -> [UInt8] { encode(text.bytes) }

    public static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count)
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.append(byte)
            default:
                encoded.append(UInt8(ascii: "%"))
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        return encoded
    }

    private static let digits = [UInt8]("0123456789ABCDEF".utf8)
}
