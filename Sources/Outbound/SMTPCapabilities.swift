/// The extensions that a mail server offers, read from the lines of its answers. It is pure.
struct SMTPCapabilities {
    /// Whether the server has answered EHLO since the connection, or its TLS, began.
    private(set) var isKnown = false
    private(set) var hasUTF8 = false

    mutating func received(_ line: UnsafeRawBufferPointer) {
        // A greeting, or the answer to STARTTLS: earlier answers do not count any more (RFC 3207 §4.2).
        if line.starts(with: "220".utf8) { self = SMTPCapabilities() }
        guard line.starts(with: "250".utf8), line.count > 4 else { return }
        isKnown = true
        let keyword = line[4...].prefix { $0 > 0x20 }
        if keyword.lazy.map({ $0 & 0xDF }).elementsEqual("SMTPUTF8".utf8.map { $0 & 0xDF }) { hasUTF8 = true }
    }
}
