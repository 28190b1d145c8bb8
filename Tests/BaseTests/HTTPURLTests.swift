import Base
import Testing

@Suite struct HTTPURLTests {
    @Test(arguments: [
        "https://a", "https://a.example/", "https://a.example:8443/x/y?z=1&w=%20", "http://127.0.0.1:1/",
        "https://[::1]",
        "https://[2001:db8::1]:443/x", "https://a_b-c.example?q", "https://a:65535",
    ])
    func anEndpointIsTaken(_ text: String) {
        #expect(HTTPURL(Text(text))?.isPlaintext == text.hasPrefix("http:"))
    }

    @Test(arguments: [
        "", "a", "ftp://a", "HTTPS://a", "https:/a", "https://", "https:///x", "https://?x", "https://user@a",
        "https://user:p@a/", "https://a/#f", "https://a\\b", "https://a b", "https://a/\r\nX: y", "https://a/\u{7F}",
        "https://ä/", "https://a:0", "https://a:65536", "https://a:", "https://a:x", "https://a:1:2", "https://[::1",
        "https://[]", "https://[g::1]", "https://[::1]x", "https://%31/", "file:///etc/passwd", "gopher://a",
        "https://" + String(repeating: "a", count: 254), "https://a/" + String(repeating: "b", count: 2_039),
    ])
    func anythingElseIsRefused(_ text: String) {
        #expect(HTTPURL(Text(text)) == nil)
    }

    @Test(
        arguments: [
            ("https://a", 443), ("http://a", 80), ("https://a/:1", 443), ("https://a?:1", 443),
            ("https://a:8443/x", 8_443),
            ("http://127.0.0.1:1/", 1), ("https://a:65535", 65_535), ("https://a:00443", 443), ("https://[::1]", 443),
            ("http://[::1]/", 80), ("https://[2001:db8::1]:444/x:1", 444),
        ] as [(String, UInt16)])
    func thePortIsTheSchemesUnlessItIsNamed(_ text: String, _ port: UInt16) {
        #expect(HTTPURL(Text(text))?.port == port)
    }

    @Test(arguments: ["https://a/#f", "https://a#f", "https://a/{b}|c^d`", "http://[::1]:80/#/a?b"])
    func aLinkMayHoldWhatABrowserTakes(_ text: String) {
        #expect(HTTPURL(Text(text), for: .link) != nil)
        #expect(HTTPURL(Text(text)) == nil)
    }

    @Test(arguments: [
        "https://", "https:///x", "https://#f", "https://a:99999", "https://u@a", "https://a\\b#", "https://a/<",
    ])
    func aLinkNeedsAHostToo(_ text: String) {
        #expect(HTTPURL(Text(text), for: .link) == nil)
    }

    @Test func aQueryIsEncodedAndAppended() throws {
        let url = try #require(HTTPURL("https://a/x"))
        let one = try #require(url.with(query: "q", "a b&c=d/é"))
        #expect(one.text == "https://a/x?q=a%20b%26c%3Dd%2F%C3%A9")
        #expect(one.with(query: "r", "1")?.text == "https://a/x?q=a%20b%26c%3Dd%2F%C3%A9&r=1")
        #expect(url.with(query: "q", Text(String(repeating: "x", count: 3_000))) == nil)
    }
}
