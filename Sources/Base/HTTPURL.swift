/// An absolute `https://` or `http://` URL: printable ASCII, a host, a port that exists, no user information, at most
/// 2,048 bytes. This is the only parser of URLs: URLs to call, to link to or only to show all need a host.
public struct HTTPURL: Sendable, Hashable {
    /// The use of a URL, which decides what may follow the host.
    public enum Use: Sendable {
        /// The server itself calls the URL. A fragment is refused, because clients never send it to a server. Bytes
        /// that parsers treat differently are refused too.
        case endpoint
        /// A browser opens or shows the URL. A fragment and the bytes that browsers accept unescaped are allowed.
        case link
    }

    public let text: Text
    public let isPlaintext: Bool
    /// The host as it was written, without port and brackets.
    public let host: Text

    public static let byteCountMax = 2_048

    public init?(_ text: Text, for use: Use = .endpoint, byteCountMax: Int = byteCountMax) {
        let bytes = text.bytes
        guard bytes.count <= byteCountMax, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let refused = use == .endpoint ? Self.refusedInEndpoints : Self.refusedInLinks
        guard !bytes.contains(where: { refused.contains($0) }) else { return nil }
        let isPlaintext = bytes.starts(with: "http://".utf8)
        guard isPlaintext || bytes.starts(with: "https://".utf8) else { return nil }
        guard let host = Self.host(of: Self.authority(of: bytes, isPlaintext: isPlaintext)) else { return nil }
        self.text = text
        self.isPlaintext = isPlaintext
        self.host = Text(unchecked: Array(host))
    }

    /// The port: that of the scheme, where the text names none.
    public var port: UInt16 {
        let authority = Self.authority(of: text.bytes, isPlaintext: isPlaintext)
        let bracketCount = authority.first == UInt8(ascii: "[") ? 2 : 0
        // What follows the host was checked when the URL was made: nothing, or a colon and the digits of a port.
        let digits = authority.dropFirst(bracketCount + host.byteCount + 1)
        guard !digits.isEmpty else { return isPlaintext ? 80 : 443 }
        return digits.reduce(0) { $0 * 10 + UInt16($1 - 0x30) }
    }

    /// Whether the host is this machine (RFC 8252 §8.3). The whole host counts: `localhost.example` is another host.
    public var isOfThisMachine: Bool { ["localhost", "127.0.0.1", "::1"].contains(host) }

    /// This URL with `name=value` added at the end of its query, both percent-encoded.
    public func with(query name: Text, _ value: Text) -> HTTPURL? {
        let separator: Text = text.bytes.contains(UInt8(ascii: "?")) ? "&" : "?"
        let pair = PercentEncoding.encode(name) + [UInt8(ascii: "=")] + PercentEncoding.encode(value)
        return HTTPURL(Text(unchecked: text.bytes + separator.bytes + pair))
    }

    private static let refusedInEndpoints = [UInt8]("\\\"<>^`{|}#".utf8)
    private static let refusedInLinks = [UInt8]("\\\"<>".utf8)
    private static let authorityEnds = [UInt8]("/?#".utf8)

    /// The part of a URL between `//` and the path, query or fragment (RFC 3986 §3.2).
    private static func authority(of url: [UInt8], isPlaintext: Bool) -> ArraySlice<UInt8> {
        url.dropFirst(isPlaintext ? "http://".utf8.count : "https://".utf8.count).prefix { !authorityEnds.contains($0) }
    }

    /// The host of `host`, `host:port`, `[v6]` or `[v6]:port`. Nil for anything else.
    private static func host(of authority: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var host = authority
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            host = authority[(authority.startIndex + 1)..<end]
            guard !host.isEmpty, host.allSatisfy(isHexOrColonOrDot) else { return nil }
            return isPort(authority[(end + 1)...]) ? host : nil
        }
        if let colon = authority.firstIndex(of: UInt8(ascii: ":")) {
            guard isPort(authority[colon...]) else { return nil }
            host = authority[..<colon]
        }
        return (1...253).contains(host.count) && host.allSatisfy(isHostByte) ? host : nil
    }

    private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first else { return true }
        let digits = text.dropFirst()
        guard first == UInt8(ascii: ":"), (1...5).contains(digits.count) else { return false }
        guard digits.allSatisfy(\.isASCIIDigit) else { return false }
        return (1...65_535).contains(digits.reduce(0) { $0 * 10 + Int($1 - 0x30) })
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte.isASCIILetter || byte.isASCIIDigit || "-._".utf8.contains(byte)
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
