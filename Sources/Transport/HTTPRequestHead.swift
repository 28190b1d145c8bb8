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

    let method: String
    /// Without the query, and without the authority where the target has one. Not decoded: no route has an escape.
    let path: String
    /// The length of the body. `Int.max` for a length that is not a number.
    let bodyByteCount: Int

    static func parse(_ bytes: [UInt8]) -> Parsed {
        guard let end = endOfHead(bytes) else { return bytes.count >= byteCountMax ? .tooLarge : .incomplete }
        guard end <= byteCountMax else { return .tooLarge }
        let lines = bytes[..<end].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
        let words = lines[0].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard words.count == 3, !words[0].isEmpty, words[2].starts(with: "HTTP/1.".utf8), words[2].count == 8,
            let path = path(of: words[1])
        else { return .malformed }
        return .head(
            HTTPRequestHead(
                method: String(decoding: words[0], as: UTF8.self), path: path,
                bodyByteCount: lines.dropFirst().compactMap(contentLength).max() ?? 0))
    }

    /// The index after the empty line. RFC 9112 §2.2 allows a bare LF at the end of lines.
    private static func endOfHead(_ bytes: [UInt8]) -> Int? {
        var lineStart = 0
        for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") {
            let isEmpty = index == lineStart || (index == lineStart + 1 && bytes[lineStart] == UInt8(ascii: "\r"))
            if isEmpty { return index + 1 }
            lineStart = index + 1
        }
        return nil
    }

    /// The path of a target in origin form or absolute form (RFC 9112 §3.2); nil for another form.
    private static func path(of target: ArraySlice<UInt8>) -> String? {
        var rest = target
        for scheme in ["http://", "https://"] where rest.starts(with: scheme.utf8) {
            rest = rest.dropFirst(scheme.utf8.count).drop { $0 != UInt8(ascii: "/") }
        }
        guard rest.first == UInt8(ascii: "/") else { return nil }
        return String(decoding: rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }, as: UTF8.self)
    }

    private static func contentLength(_ line: ArraySlice<UInt8>) -> Int? {
        let name = [UInt8]("content-length:".utf8)
        guard line.count >= name.count, zip(line, name).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 }) else { return nil }
        let value = line.dropFirst(name.count).filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        return Int(String(decoding: value, as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil } ?? .max
    }
}
