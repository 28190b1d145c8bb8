import Base

/// The head of a request to the side port: the request line, and the length of the body. A value.
struct HTTPRequestHead: Equatable {
    static let byteCountMax = 8 * 1024

    /// The result of parsing the bytes so far.
    enum Parsed: Equatable {
        case incomplete
        case head(HTTPRequestHead)
        case malformed
        case tooLarge
    }

    let method: Text
    /// Without the query, and without the authority where the target has one. Not decoded: no route has an escape.
    let path: Text
    /// The length of the body. `Int.max` for a length that is not a number.
    let bodyByteCount: Int

    /// `knownCount`: how many of the bytes an earlier call found incomplete; they are not looked through again.
    static func parse(_ bytes: [UInt8], knownCount: Int = 0) -> Parsed {
        guard let end = endOfHead(bytes, from: knownCount) else {
            return bytes.count >= byteCountMax ? .tooLarge : .incomplete
        }
        guard end <= byteCountMax else { return .tooLarge }
        let lines = bytes[..<end].split(separator: lineFeed, omittingEmptySubsequences: false)
            .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
        let words = lines[0].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, words[2].starts(with: "HTTP/1.".utf8), words[2].count == 8,
            let method = Text(validating: [UInt8](words[0])), !method.isEmpty, let path = path(of: words[1])
        else { return .malformed }
        return .head(
            HTTPRequestHead(
                method: method, path: path, bodyByteCount: lines.dropFirst().compactMap(contentLength).max() ?? 0))
    }

    /// The index after the empty line. RFC 9112 §2.2 allows a bare LF at the end of lines.
    private static func endOfHead(_ bytes: [UInt8], from first: Int) -> Int? {
        let last = bytes.indices.dropFirst(first).first { bytes[$0] == lineFeed && isLineEmpty(bytes, endingAt: $0) }
        return last.map { $0 + 1 }
    }

    private static func isLineEmpty(_ bytes: [UInt8], endingAt end: Int) -> Bool {
        let line = bytes[..<end].suffix(2)
        let content = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        return content.isEmpty || content.last == lineFeed
    }

    private static let lineFeed = UInt8(ascii: "\n")

    /// The path of a target in origin form or absolute form (RFC 9112 §3.2); nil for another form.
    private static func path(of target: ArraySlice<UInt8>) -> Text? {
        var rest = target
        for scheme in ["http://", "https://"] where rest.starts(with: scheme.utf8) {
            rest = rest.dropFirst(scheme.utf8.count).drop { $0 != UInt8(ascii: "/") }
        }
        guard rest.first == UInt8(ascii: "/") else { return nil }
        return Text(validating: [UInt8](rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }))
    }

    private static func contentLength(_ line: ArraySlice<UInt8>) -> Int? {
        let name = [UInt8]("content-length:".utf8)
        guard line.count >= name.count, zip(line, name).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 }) else { return nil }
        let value = line.dropFirst(name.count).filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return Int(String(decoding: value, as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil } ?? .max
    }
}
