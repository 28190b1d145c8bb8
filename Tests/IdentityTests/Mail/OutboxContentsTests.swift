import Base
import Messages
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

    @Test func `Contents of before the marks are read as they are`() {
        let contents = OutboxContents(subject: "s", text: Text("see \(Self.link)"), html: "<a>", link: Self.link)
        #expect(contents.expanded() == contents)
        let withoutLink = OutboxContents(subject: "s", text: "\u{1}L", html: "h")
        #expect(withoutLink.expanded() == withoutLink && withoutLink.compacted() == withoutLink)
    }
}
