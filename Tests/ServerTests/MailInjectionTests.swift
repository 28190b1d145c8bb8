import Base
import Crypto
import Glibc
import JSON
import Messages
import Reactor
import Synchronization
import TestSupport
import Testing

/// What end users and admins type arrives in a mail as text, whatever it looks like.
@Suite struct MailInjectionTests {
    /// Header lines, encoded words, markup, placeholders, and line separators that are not control characters. Nothing
    /// in it could be a link: such a name is left out (`NamesInMailTests`).
    private static let hostile: Text =
        "\u{2028}Bcc: eve@evil\u{2029}=?utf-8?Q?=0ABcc:_x?= <b a='1'>\"&%LINK%"

    @Test(arguments: ["a\r\nBcc: eve@evil.example", "a\nb", "a\u{85}b", "a\u{1}b", "a\u{202E}b"])
    func aNameWithControlCharactersIsRefused(_ name: Text) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            expectRefusal("INVALID_DISPLAY_NAME") { try client.update(uid, ["display_name"]) { $0.displayName = name } }
            expectRefusal("INVALID_DISPLAY_NAME") { try client.setTenant(["display_name"]) { $0.displayName = name } }
            expectRefusal("INVALID_DISPLAY_NAME") { try client.configureMail(["sender_name"]) { $0.senderName = name } }
            let address = Text("\(name)@example.com")
            expectRefusal("INVALID_EMAIL") { _ = try client.signUp(address) }
            expectRefusal("INVALID_EMAIL") { try client.sendOob(.passwordReset, email: address) }
            expectRefusal("INVALID_EMAIL") {
                try client.configureMail(["sender_address"]) { $0.senderAddress = address }
            }
        }
    }

    @Test(arguments: [true, false])
    func hostileNamesArriveAsText(_ hasTemplate: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let mailServer = try MailServer(directory, port: try CrashTests.freePort())
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: mailServer.port, senderName: Self.hostile)
                try client.setTenant(["display_name"]) { $0.displayName = Self.hostile }
                if hasTemplate {
                    try client.configureMail(["templates"]) {
                        $0.templates = [
                            EmailTemplate(
                                requestType: .passwordReset, subject: "%DISPLAY_NAME%%APP_NAME%",
                                text: "\r\n.\r\nMAIL FROM:<>\r\n%DISPLAY_NAME%|%LINK%",
                                html: "<p title=\"%DISPLAY_NAME%\">%APP_NAME%</p> %LINK%")
                        ]
                    }
                }
                let uid = try client.signUp("o'brien&co=/{x}@example.com").user!.uid
                try client.update(uid, ["display_name"]) { $0.displayName = Self.hostile }
                try client.sendOob(.passwordReset, email: "o'brien&co=/{x}@example.com")
                try await client.newestMail(becomes: .sent)
                let mails = try mailServer.mails()
                #expect(mails.count == 1)
                try Self.checkEnvelope(try #require(mails.first))
                try Self.checkWords(try #require(mails.first), hasTemplate)
            }
        }
    }

    private static func checkEnvelope(_ mail: JSONValue) throws {
        #expect(mail["to"] == .array([.string("o'brien&co=/{x}@example.com")]))
        #expect(mail["from"]?.text == "no-reply@example.com")
        #expect(mail["recipient_header"]?.text == "o'brien&co=/{x}@example.com")
        #expect(mail["sender_address"]?.text == "no-reply@example.com")
        #expect(mail["defects"] == .array([]))
        let names = mail["headers"]?.array?.compactMap(\.text) ?? []
        let expected: [Text] = [
            "From", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Auto-Submitted", "Content-Type",
        ]
        #expect(names.filter { !$0.string.hasPrefix("X-") } == expected)
    }

    private static func checkWords(_ mail: JSONValue, _ hasTemplate: Bool) throws {
        let (text, html) = (mail["text"]?.text?.string ?? "", mail["html"]?.text?.string ?? "")
        let subject = mail["subject"]?.text?.string ?? ""
        #expect(subject.contains("=?utf-8?Q?=0ABcc:_x?= <b a='1'>\"&%LINK%"))
        #expect(!subject.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{2028}" || $0 == "\u{2029}" })
        #expect(!html.contains("<b"))
        if hasTemplate {
            // Only our own tags and quotes are markup, and the "%LINK%" within the name is not filled in.
            let escaped = "&lt;b a=&#39;1&#39;&gt;&quot;&amp;%LINK%"
            #expect(html.contains("\(escaped)\">") && html.contains("\(escaped)</p>"))
            #expect(text.contains("\n.\nMAIL FROM:<>\n") || text.contains("\r\n.\r\nMAIL FROM:<>\r\n"))
            #expect(text.contains("\(hostile)|https://"))
        } else {
            #expect(html.contains("o&#39;brien&amp;co=/{x}@example.com"))
        }
    }

    // MARK: The webhook

    @Test func aWebhooksBodyArrivesWholeAndSigned() async throws {
        let secret = Secret([UInt8](repeating: 9, count: 32))
        let seen = Mutex<[FakeHTTPServer.Request]>([])
        let receiver = FakeHTTPServer { request in
            seen.withLock { $0.append(request) }
            return .response(HTTPResponse(status: 204, body: []))
        }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.deliverByWebhook(url: "\(receiver.url)/mail", secret: secret)
            // A template of the greatest length, with characters that JSON has to escape and characters beyond ASCII.
            let filler = String(repeating: "\"\\\n\u{FC}</", count: 32_768 / 8 - 1)
            let html = Text("%LINK%\(filler)")
            try client.configureMail(["templates"]) {
                $0.templates = [
                    EmailTemplate(requestType: .passwordReset, subject: "\u{1F511}", text: "%LINK%", html: html)
                ]
            }
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try await client.newestMail(becomes: .sent)
            let request = try #require(seen.withLock { $0.first })
            #expect(request.fields["content-length"] == "\(request.body.count)")
            let body = try JSONValue(parsing: request.body)
            #expect(body["html"]?.text?.string.hasSuffix(filler) == true)
            #expect(body["subject"]?.text == "\u{1F511}")
            // As a receiver checks it: the time is near, and the tag is of time and body under the shared secret.
            let signature = try #require(request.fields["postern-signature"])
            let time = try #require(Int64(signature.dropFirst(2).prefix { $0 != "," }))
            #expect(abs(time - server.clock.clock.now().seconds) <= 1)
            func made(under secret: Secret, of body: [UInt8]) -> String {
                "t=\(time),v1=\(Hex.encode(HMACKey(secret).tag(of: [UInt8]("\(time).".utf8) + body)))"
            }
            #expect(signature == made(under: secret, of: request.body))
            #expect(signature != made(under: secret, of: request.body.dropLast()))
            #expect(signature != made(under: Secret([UInt8](repeating: 8, count: 32)), of: request.body))
        }
    }
}
