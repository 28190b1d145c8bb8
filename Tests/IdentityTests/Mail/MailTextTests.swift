import Base
import Glibc
import Messages
import TestSupport
import Testing

@testable import Identity
@testable import Rules

@Suite struct MailTextTests {
    private static func text(_ string: String) -> Text { Text(unchecked: [UInt8](string.utf8)) }

    /// Every scalar except NUL, before and behind each character that has a meaning in HTML.
    @Test func noScalarHidesMarkup() async throws {
        let counts = try await inHalves { half in Self.markupCount(behindEveryOther: half) }
        let scalarCount = 0x10FFFF - 0x800 - 5
        let count = counts.reduce(0, +)
        #expect(count == 5 * scalarCount)
    }

    /// Escapes each mark behind every even or every odd scalar. Returns how many there are.
    private static func markupCount(behindEveryOther half: Int) -> Int {
        let marks = [UInt8]("<>&\"'".utf8)
        var name: [UInt8] = []
        var count = 0
        for value in UInt32(1)...0x10FFFF where value % 2 == UInt32(half) {
            guard let scalar = Unicode.Scalar(value), let encoded = UTF8.encode(scalar) else { continue }
            if value < 128, marks.contains(UInt8(value)) { continue }
            for mark in marks {
                name.append(contentsOf: encoded)
                name.append(mark)
                count += 1
            }
        }
        let escaped = MailText.escaped(Text(unchecked: name))
        for mark in marks where mark != UInt8(ascii: "&") { #expect(!holds(escaped, mark)) }
        // "&lt;" and "&gt;" are 3 bytes longer than the mark, "&amp;" and "&#39;" 4, "&quot;" 5.
        #expect(escaped.count == name.count + count / 5 * (3 + 3 + 4 + 4 + 5))
        return count
    }

    /// By memchr(3), because there are many bytes.
    private static func holds(_ bytes: [UInt8], _ byte: UInt8) -> Bool {
        bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return memchr(start, Int32(byte), bytes.count) != nil
        }
    }

    @Test func aTemplateIsFilledInOnePass() {
        let values = MailText.Values(
            appName: "%LINK%", email: "%EMAIL%", newEmail: "n", displayName: "a\u{301}%", link: "L")
        let template = EmailTemplate(
            requestType: .passwordReset, subject: "%%LINK%%\u{301}%DISPLAY_NAME%LINK%",
            text: "%APP_NAME%%EMAIL%%NEW_EMAIL%%NOTHING%%LINK", html: "%LINK%\u{301}%link%")
        let mail = MailText(.passwordReset, values, templates: [template], locale: "", byteCountMax: 1_000)
        #expect(mail.subject == "%L%\u{301}a\u{301}%LINK%")
        #expect(mail.text == "%LINK%%EMAIL%n%NOTHING%%LINK" && mail.html == "L\u{301}%link%")
    }

    @Test(arguments: [("de-CH", "de"), ("DE", "de"), ("de", "de"), ("fr", ""), ("", ""), ("de\u{301}", "")])
    func aTemplateIsFoundByItsLanguage(locale: String, expected: String) {
        let values = MailText.Values(appName: "", email: "", newEmail: "", displayName: "", link: "L")
        let templates = ["", "DE", "de-AT"].map { locale in
            EmailTemplate(
                requestType: .passwordReset, locale: Self.text(locale), subject: Self.text(locale.lowercased()),
                text: "%LINK%", html: "%LINK%")
        }
        let mail = MailText(
            .passwordReset, values, templates: templates, locale: Self.text(locale), byteCountMax: 1_000)
        #expect(mail.subject == Self.text(expected))
    }

    @Test func whatIsLongerThanTheLimitHasOurWords() {
        let values = MailText.Values(appName: "App", email: "e", newEmail: "", displayName: "", link: "0123456789")
        let template = EmailTemplate(
            requestType: .passwordReset, subject: "0123456789", text: "%LINK%", html: "%LINK%")
        for (limit, fits) in [(30, true), (29, false), (0, false)] {
            let mail = MailText(.passwordReset, values, templates: [template], locale: "", byteCountMax: limit)
            #expect((mail.subject == "0123456789") == fits)
            #expect(mail.text.contains("0123456789"))
        }
    }

    // MARK: Header lines

    private static func words(_ text: String, _ field: StaticString) -> [String] {
        let header = "\(field)" + MailMessage.encodedWords(Self.text(text), behind: field)
        return header.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// RFC 2047 §2: 76 characters a line, 75 a word; whole characters in each word.
    @Test(arguments: ["a", "\u{FC}", "\u{20AC}", "\u{1F511}", "e\u{301}\u{316}"])
    func aLineWithEncodedWordsHas76CharactersAtMost(_ piece: String) throws {
        for count in [0, 1, 12, 13, 14, 39, 40, 42, 43, 45, 46, 200] {
            let text = String(repeating: piece, count: count)
            var decoded = ""
            for field in ["Subject: ", "From: "] as [StaticString] {
                decoded = ""
                for (index, line) in Self.words(text, field).enumerated() {
                    #expect(line.utf8.count <= 76, "\(line)")
                    #expect(index == 0 || line.hasPrefix(" =?"))
                    let word = index == 0 ? String(line.dropFirst(field.utf8CodeUnitCount)) : String(line.dropFirst())
                    #expect(word.utf8.count <= 75 && word.hasPrefix("=?utf-8?B?") && word.hasSuffix("?="))
                    let bytes = try #require(Base64.standard.decode([UInt8](word.dropFirst(10).dropLast(2).utf8)))
                    decoded += try #require(String(validating: bytes, as: UTF8.self))
                }
                #expect(decoded.utf8.elementsEqual(text.utf8))
            }
        }
    }

    @Test func everyLineOfAMailsHeadIsShort() {
        let name = Self.text(String(repeating: "\u{FC}", count: 128))
        let message = MailMessage(
            messageID: "0123456789abcdef0123456789", senderName: name, senderAddress: "no-reply@example.com",
            replyTo: "help@example.com", recipient: "ada@example.com",
            contents: OutboxContents(subject: name, text: "t", html: "h"), createdAt: .zero)
        let mail = String(decoding: message.bytes(), as: UTF8.self)
        let lines = mail.split(separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines.allSatisfy { $0.utf8.count <= 76 }, "\(lines.map(\.utf8.count))")
        #expect(lines.contains(" <no-reply@example.com>"))
    }
}
