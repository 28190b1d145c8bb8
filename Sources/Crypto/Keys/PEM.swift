public import Base

/// Textual encoding of keys (RFC 7468): base64 of DER between two lines with a label.
public enum PEM {
    /// Lines of 64 characters, each with a line feed. The text is a secret if `der` is one.
    public static func encode(_ label: StaticString, _ der: Secret) -> Secret {
        let digits = der.withBytes { Base64.standard.encode([UInt8]($0)) }
        var text = boundary("BEGIN", label) + [0x0A]
        for start in stride(from: 0, to: digits.count, by: 64) {
            text += digits[start..<min(start + 64, digits.count)] + [0x0A]
        }
        return Secret(text + boundary("END", label) + [0x0A])
    }

    /// The DER inside of exactly one block with this label; white space around it and in it is ignored. Throws
    /// `malformed`. The caller bounds the size.
    public static func decode(_ label: StaticString, _ text: [UInt8]) throws(CryptoError) -> [UInt8] {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || (0x09...0x0D).contains($0) }
        let (begin, end) = (boundary("BEGIN", label), boundary("END", label))
        var rest = text.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        guard rest.count >= begin.count + end.count, rest.starts(with: begin), rest.suffix(end.count).elementsEqual(end)
        else { throw .malformed }
        let digits = rest.dropFirst(begin.count).dropLast(end.count).filter { !isSpace($0) }
        guard !digits.isEmpty, let der = Base64.standard.decode(digits) else { throw .malformed }
        return der
    }

    private static func boundary(_ word: StaticString, _ label: StaticString) -> [UInt8] {
        [UInt8]("-----\(word) \(label)-----".utf8)
    }
}
