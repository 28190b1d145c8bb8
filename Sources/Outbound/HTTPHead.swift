import Base

/// Reads the few header fields that are used.
enum HTTPHead {
    /// Reads one line of an answer's head, with its line feed. A status line starts over, because "100 Continue" may
    /// have come before it.
    static func read(_ line: UnsafeRawBufferPointer, into answer: inout HTTPAnswer) {
        if line.starts(with: "HTTP/".utf8) {
            answer.contentType = .empty
            answer.maxAge = nil
            return
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
        let name = line[..<colon].lowercasedASCII
        let value = line[(colon + 1)...].lowercasedASCII
        if name == [UInt8]("content-type".utf8) {
            let type = trimmed(value.prefix { $0 != UInt8(ascii: ";") })
            answer.contentType = type.allSatisfy { (0x21...0x7E).contains($0) } ? Text(unchecked: Array(type)) : .empty
        } else if name == [UInt8]("cache-control".utf8) {
            answer.maxAge = maxAge(value[...])
        }
    }

    /// Whether a line says that the body is coded for the transfer in another way than in chunks (RFC 9112 §6.1). The
    /// requests ask for no other coding.
    static func namesForeignCoding(_ line: UnsafeRawBufferPointer) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
            trimmed(line[..<colon].lowercasedASCII[...]).elementsEqual("transfer-encoding".utf8)
        else { return false }
        let coding = trimmed(line[(colon + 1)...].lowercasedASCII[...])
        return !coding.elementsEqual("chunked".utf8) && !coding.elementsEqual("identity".utf8)
    }

    /// The lifetime that Cache-Control states (RFC 9111 §5.2.2). A quoted or malformed number is ignored.
    static func maxAge(_ value: ArraySlice<UInt8>) -> Duration? {
        var found: Duration?
        for part in value.split(separator: UInt8(ascii: ",")) {
            let directive = trimmed(part)
            if directive.elementsEqual("no-store".utf8) || directive.elementsEqual("no-cache".utf8) { return .zero }
            guard directive.starts(with: "max-age=".utf8) else { continue }
            let digits = directive.dropFirst("max-age=".utf8.count)
            guard !digits.isEmpty, digits.allSatisfy(\.isASCIIDigit) else { continue }
            // More than nine digits are longer than any useful lifetime.
            found = .seconds(digits.count > 9 ? 999_999_999 : digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) })
        }
        return found
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D || $0 == 0x0A }
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }
}
