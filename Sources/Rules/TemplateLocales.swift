import Base

/// The language tags by which a mail or SMS finds its template, in lower case, the best first. Tags are ASCII (RFC 5646
/// §2.1), and compared without regard to case.
///
/// | locale | tags |
/// |---|---|
/// | `de-CH` | `de-ch`, `de`, and the empty tag of templates for every language |
/// | empty | the empty tag |
enum TemplateLocales {
    static func tags(for locale: Text) -> [[UInt8]] {
        let full = locale.bytes.lowercasedASCII
        return [full, Array(full.prefix { $0 != UInt8(ascii: "-") }), []]
    }
}
