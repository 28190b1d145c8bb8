import Base
import Messages
import TestSupport
import Testing

@testable import Rules

/// Random templates are filled and judged as by the simplest code that does it.
@Suite struct MailTemplateTests {
    private static let values = MailText.Values(
        appName: "A & B", email: "ada@example.com", newEmail: "%LINK%", displayName: "<Ada>", link: "https://l",
        notMeLink: .empty)
    private static let placeholders: [(name: String, value: Text)] = [
        ("%LINK%", values.link), ("%EMAIL%", values.email), ("%NEW_EMAIL%", values.newEmail),
        ("%DISPLAY_NAME%", values.displayName), ("%APP_NAME%", values.appName), ("%NOT_ME_LINK%", values.notMeLink),
    ]

    private static let pieces =
        placeholders.map { $0.name } + [
            "%", "%", "%%", "%%%%%%%%", "LINK", "LINK%", "%LINK", "%EMAI", "_", "NAME", "%X%", "%a%", "a", "\u{E9}",
            "plain text ", "%NEW_", "%NOT_ME_LINK", "%link%", "%LINKS%", "%DISPLAY_NAMES%",
        ]

    private static func text(_ random: inout SeededRandom) -> Text {
        var text = ""
        for _ in 0..<random.below(16) { text += pieces[random.below(pieces.count)] }
        return Text(text)
    }

    // MARK: The simplest code

    private static func filled(_ template: Text, max: Int, isHTML: Bool) -> [UInt8]? {
        var filled: [UInt8] = []
        var rest = template.bytes
        while let first = rest.first {
            if let found = placeholders.first(where: { rest.starts(with: $0.name.utf8) }) {
                filled += isHTML ? MailText.escaped(found.value) : found.value.bytes
                rest.removeFirst(found.name.utf8.count)
            } else {
                filled.append(first)
                rest.removeFirst()
            }
        }
        return filled.count <= max ? filled : nil
    }

    private static func parts(_ template: EmailTemplate, max: Int) -> [[UInt8]]? {
        guard let subject = filled(template.subject, max: max, isHTML: false),
            let text = filled(template.text, max: max - subject.count, isHTML: false),
            let html = filled(template.html, max: max - subject.count - text.count, isHTML: true)
        else { return nil }
        return [subject, text, html]
    }

    private static func unknownPlaceholder(in template: Text) -> Text? {
        let parts = template.bytes.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
        let unknown = parts.dropFirst().dropLast().first { part in
            !part.isEmpty && part.allSatisfy { $0 == UInt8(ascii: "_") || (0x41...0x5A).contains($0) }
                && !placeholders.contains { $0.name.utf8.dropFirst().dropLast().elementsEqual(part) }
        }
        return unknown.map { Text(unchecked: Array($0)) }
    }

    @Test func `A template is filled as before`() {
        var random = SeededRandom.printed()
        let limits = [0, 5, 40, 100, 250, 10_000]
        for _ in 0..<4_000 {
            let template = EmailTemplate(
                requestType: .passwordReset, subject: Self.text(&random), text: Self.text(&random),
                html: Self.text(&random))
            let max = limits[random.below(limits.count)]
            let found = MailText.parts(template, Self.values, byteCountMax: max).map { [$0.subject, $0.text, $0.html] }
            #expect(found == Self.parts(template, max: max), "\(template), \(max)")
        }
    }

    @Test func `An unknown placeholder is found as before`() {
        var random = SeededRandom.printed()
        var count = 0
        for _ in 0..<4_000 {
            let template = Self.text(&random)
            let found = MailText.unknownPlaceholder(in: template)
            #expect(found == Self.unknownPlaceholder(in: template), "\(template)")
            if found != nil { count += 1 }
        }
        #expect((1..<4_000).contains(count), "both must occur")
    }

    @Test func `A long row of signs is plain text`() {
        let row = Text(String(repeating: "%", count: 32_768))
        #expect(MailText.unknownPlaceholder(in: row) == nil && !row.contains("%LINK%"))
        let template = EmailTemplate(requestType: .passwordReset, subject: "s", text: row, html: row)
        let found = MailText.parts(template, Self.values, byteCountMax: 1 << 20)
        #expect(found?.text == row.bytes && found?.html == row.bytes)
    }
}
