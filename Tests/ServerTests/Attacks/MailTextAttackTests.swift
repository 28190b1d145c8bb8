import Base
import Messages
import TestSupport
import Testing

/// Display names that would be markup in somebody's mail.
@Suite struct MailTextAttackTests {
    /// U+0600 joins the next character to one `Character`, so a search by Characters does not find the "<".
    @Test(arguments: ["\u{600}", "\u{1F3F4}\u{200D}", "\u{110BD}", "e\u{301}", "\u{FE0F}", "\u{2028}"], [true, false])
    func noCharacterHidesMarkup(before: String, hasTemplate: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let name = "\(before)<img src=x onerror=alert(1)>\(before)\"\(before)'\(before)&\(before)>\u{301}"
            if hasTemplate {
                try client.configureMail(["templates"]) {
                    $0.templates = [
                        EmailTemplate(
                            requestType: .passwordReset, subject: "%DISPLAY_NAME%", text: "%LINK%",
                            html: "%APP_NAME%%DISPLAY_NAME%\u{301}%LINK%")
                    ]
                }
            }
            try client.setTenant(["display_name"]) { $0.displayName = Text(name) }
            let uid = try client.signUp("ada@example.com").user!.uid
            try client.update(uid, ["display_name"]) { $0.displayName = Text(name) }
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let mail = try #require(try client.mails().first)
            // Our built-in text has neither name in the HTML.
            #expect(mail.contents.html.contains("&lt;img src=x onerror=alert(1)&gt;") == hasTemplate)
            #expect(!mail.contents.html.contains("<img") && !mail.contents.html.contains("\"\u{600}"))
            // A placeholder with a combining mark behind it is still one.
            #expect(!mail.contents.html.contains("%LINK%") && !mail.contents.html.contains("%DISPLAY_NAME%"))
            let ends: Set<UInt32> = [0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029]
            #expect(!mail.contents.subject.string.unicodeScalars.contains { ends.contains($0.value) })
        }
    }
}
