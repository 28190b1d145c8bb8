import Base
import Messages
import Rules

/// The stored form of a mail's words: the link once, and a mark wherever the words repeat it. A link may be thousands
/// of bytes long because of its continue_url, and a mail holds it three times.
///
/// The mark is 0x01 `L`, in HTML 0x01 `H` for the escaped link; a 0x01 of the words themselves is 0x01 0x01.
extension OutboxContents {
    private static let mark: UInt8 = 1
    private static let plainMark = UInt8(ascii: "L")
    private static let escapedMark = UInt8(ascii: "H")

    func compacted() -> OutboxContents {
        guard !link.isEmpty else { return self }
        let escaped = MailText.escaped(link)
        var stored = self
        stored.text = Self.compacted(text, link.bytes, Self.plainMark)
        stored.html = Self.compacted(html, escaped, Self.escapedMark)
        return stored
    }

    func expanded() -> OutboxContents {
        guard !link.isEmpty else { return self }
        let escaped = MailText.escaped(link)
        var whole = self
        whole.text = Self.expanded(text, plain: link.bytes, escaped: escaped)
        whole.html = Self.expanded(html, plain: link.bytes, escaped: escaped)
        return whole
    }

    private static func compacted(_ words: Text, _ link: [UInt8], _ linkMark: UInt8) -> Text {
        var stored: [UInt8] = []
        stored.reserveCapacity(words.byteCount)
        var search = LinkSearch(link)
        let storedLinkCount = link.count + link.count(where: { $0 == mark })
        for byte in words.bytes {
            stored.append(byte)
            if byte == mark { stored.append(mark) }
            guard search.endsLink(byte) else { continue }
            stored.removeLast(storedLinkCount)
            stored += [mark, linkMark]
        }
        return Text(unchecked: stored)
    }

    private static func expanded(_ stored: Text, plain: [UInt8], escaped: [UInt8]) -> Text {
        var words: [UInt8] = []
        var rest = stored.bytes[...]
        while let byte = rest.popFirst() {
            guard byte == mark, let next = rest.first else {
                words.append(byte)
                continue
            }
            switch next {
            case plainMark: words += plain
            case escapedMark: words += escaped
            case mark: words.append(mark)
            default:
                // A server that did not use marks wrote these words.
                words.append(byte)
                continue
            }
            rest = rest.dropFirst()
        }
        return Text(unchecked: words)
    }
}
