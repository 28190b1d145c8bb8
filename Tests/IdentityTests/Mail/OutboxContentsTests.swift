import Base
import Messages
import TestSupport
import Testing

@testable import Identity

/// A mail is stored with its link once and read as it was written.
@Suite struct OutboxContentsTests {
    private static let link: Text =
        "https://a.example/action?mode=signIn&oobCode=xyz&continueUrl=https%3A%2F%2Fb.example"

    @Test(arguments: [
        "no link", "\(link)", "a \(link)\(link) b", "\u{1}L \u{1}\u{1} \u{1}H \(link)\u{1}", "https://a.example/acti",
        "",
    ])
    func `What is stored is read as it was`(words: String) {
        let html = Text(words.replacing("&", with: "&amp;"))
        let contents = OutboxContents(subject: "s", text: Text(words), html: html, link: Self.link)
        #expect(contents.compacted().expanded() == contents)
    }

    @Test func `A long link is stored once`() {
        let long = Text(Self.link.string + String(repeating: "%20", count: 2_000))
        let escaped = long.string.replacing("&", with: "&amp;")
        let html = Text(#"<p><a href="\#(escaped)">\#(escaped)</a></p>"#)
        let contents = OutboxContents(subject: "s", text: Text("Hello,\n\n\(long)\n"), html: html, link: long)
        #expect(contents.encoded().count > 24_000)
        #expect(contents.compacted().encoded().count < long.byteCount + 100)
        #expect(contents.compacted().expanded() == contents)
    }

    // MARK: Finding the link

    /// Where links end, and how many comparisons that took.
    private static func search(_ words: [UInt8], for link: [UInt8]) -> (ends: [Int], comparisonCount: Int) {
        var search = LinkSearch(link)
        var ends: [Int] = []
        for (index, byte) in words.enumerated() where search.endsLink(byte) { ends.append(index + 1) }
        return (ends, search.comparisonCount)
    }

    private static func plainSearch(_ words: [UInt8], for link: [UInt8]) -> [Int] {
        var (start, ends): (Int, [Int]) = (0, [])
        while start + link.count <= words.count {
            if words[start...].starts(with: link) {
                start += link.count
                ends.append(start)
            } else {
                start += 1
            }
        }
        return ends
    }

    /// Few letters, so that links often begin within links; the third is the mark.
    private static func letters(_ count: Int, _ random: inout SeededRandom) -> [UInt8] {
        (0..<count).map { _ in [UInt8(ascii: "a"), UInt8(ascii: "b"), 1][random.below(3)] }
    }

    @Test func `Random links are found where a plain search finds them`() {
        var random = SeededRandom.printed()
        for _ in 0..<3_000 {
            let link = Self.letters(1 + random.below(6), &random)
            var words = Self.letters(random.below(60), &random)
            for _ in 0..<random.below(4) { words += link + Self.letters(random.below(3), &random) }
            let found = Self.search(words, for: link)
            #expect(found.ends == Self.plainSearch(words, for: link), "\(link) in \(words)")
            #expect(found.comparisonCount <= 2 * words.count)
            let text = Text(unchecked: words)
            let contents = OutboxContents(subject: "s", text: text, html: text, link: Text(unchecked: link))
            #expect(contents.compacted().expanded() == contents, "\(link) in \(words)")
        }
    }

    /// An admin's own page and template: a plain search compared the product of their lengths.
    @Test(arguments: ["https://a/", "a"])
    func `A link that repeats itself costs no more than another`(_ part: String) {
        func repeated(_ byteCount: Int) -> [UInt8] {
            Array(String(repeating: part, count: byteCount / part.utf8.count).utf8)
        }
        let link = repeated(2_040) + Array("?mode=resetPassword&oobCode=xyz".utf8)
        let words = repeated(60_000)
        let found = Self.search(words, for: link)
        #expect(found.ends.isEmpty && found.comparisonCount <= 2 * words.count)
        let both = Self.search(words + link + link, for: link)
        #expect(both.ends == [words.count + link.count, words.count + 2 * link.count])
    }

    @Test func `Contents of before the marks are read as they are`() {
        let contents = OutboxContents(subject: "s", text: Text("see \(Self.link)"), html: "<a>", link: Self.link)
        #expect(contents.expanded() == contents)
        let withoutLink = OutboxContents(subject: "s", text: "\u{1}L", html: "h")
        #expect(withoutLink.expanded() == withoutLink && withoutLink.compacted() == withoutLink)
    }
}
