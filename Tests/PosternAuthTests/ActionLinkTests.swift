import Base
import Testing

@testable import PosternAuth

@Suite struct ActionLinkTests {
    @Test func `A link tells its mode and its code, percent-decoded`() {
        let link = ActionLink(
            "https://app.example/do?mode=signIn&oobCode=a%2Db_c&tenantId=acme&continueUrl=x#oobCode=no")
        #expect(link.mode == "signIn")
        #expect(link.code == "a-b_c")
    }

    @Test func `A link inside another link is found`() {
        let inner = "https%3A%2F%2Fapp.example%2F%3Fmode%3DsignIn%26oobCode%3Dabc"
        #expect(ActionLink("https://x.page.link/?link=\(inner)&apn=1").code == "abc")
    }

    @Test func `The first value of a name counts, and malformed ones do not`() {
        #expect(ActionLink("https://a/?oobCode=1&oobCode=2").code == "1")
        #expect(ActionLink("https://a/?oobCode=%G1&oobCode=2").code == "2")
        #expect(ActionLink("https://a/?oobCode=%2&oobCode=%FF&oobCode=%00").code == nil)
        #expect(ActionLink("https://a/oobCode=1").code == nil)
    }

    @Test func `A bare code is taken as it is, another link is none`() {
        #expect(ActionLink.code(in: "a-b_c") == "a-b_c")
        #expect(ActionLink.code(in: "https://a/?oobCode=1") == "1")
        #expect(ActionLink.code(in: "https://a/") == "")
    }

    @Test func `Names and separators are bytes`() {
        #expect(ActionLink("https://a/?x=1#\u{301}&oobCode=1").code == nil)
        #expect(ActionLink("https://a/?x=1&\u{301}oobCode=1").code == nil)
        #expect(ActionLink("https://a/?oobCode=\u{301}1&y").code == "\u{301}1")
        // U+212A is canonically equivalent to "K", so texts that differ only in these two are equivalent, too.
        let fields = FormFields("state=%E2%84%AA&%E2%84%AA=1"[...])
        #expect(fields.has("state", "\u{212A}") && !fields.has("state", "K") && fields["K"] == nil)
    }
}
