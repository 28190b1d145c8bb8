import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct InternationalEmailTests {
    private func isAccepted(_ text: String) -> Bool { Email(Text(text), form: .international) != nil }

    @Test(arguments: [
        "j\u{FC}rgen@example.com", "\u{434}\u{430}\u{448}\u{430}@example.com", "\u{5F20}\u{4E09}@\u{4F8B}.com",
        "ada\u{434}\u{5F20}@ex\u{E4}mple.com", "\u{905}\u{928}\u{93F}@example.com", "\u{1F600}@example.com",
        "stra\u{DF}e@example.com", "m\u{131}ke@example.com", "plain@example.com",
        "\u{C4}da@stra\u{DF}e.example", "ada@\u{3C3}\u{3BF}\u{3C6}\u{3CC}\u{3C2}.example", "\u{FF41}da@example.com",
    ])
    func anyScriptIsAcceptedAndScriptsMayBeMixed(_ address: String) throws {
        let email = try #require(Email(Text(address), form: .international))
        #expect(email.address == Text(address) && email.canonical == Text(address))
        #expect((Email(Text(address), form: .ascii) != nil) == (address == "plain@example.com"))
    }

    @Test(arguments: [
        // Characters that NFC composes, orders or replaces, the Kelvin sign among them.
        "cafe\u{301}@example.com", "\u{212A}elvin@example.com", "ada@example.\u{212A}om", "a\u{301}\u{323}@example.com",
        "\u{1112}\u{1161}\u{11AB}@example.com", "\u{2126}@example.com",
        // Controls, direction marks, blanks, invisible characters and those without a meaning.
        "a\u{80}b@example.com", "a\u{202E}b@example.com", "a\u{2066}b@example.com", "\u{200F}ada@example.com",
        "ada\u{200B}@example.com", "\u{FEFF}ada@example.com", "a\u{200D}b@example.com", "a\u{AD}b@example.com",
        "a\u{A0}b@example.com", "a\u{3000}b@example.com", "a\u{2028}b@example.com", "a\u{FE0F}b@example.com",
        "a\u{3164}b@example.com", "a\u{E000}b@example.com", "a\u{378}b@example.com", "a\u{FFFF}b@example.com",
        "a\u{E0041}b@example.com",
        // Characters that other software takes for "@" and ".".
        "ada\u{FF20}example.com", "a\u{FF20}b@example.com", "ada@example\u{3002}com", "ada@example\u{FF0E}com",
        // Domains that name resolvers map to another spelling: capitals, full width, a Roman numeral, a ligature.
        "ada@ex\u{C4}mple.com", "ada@\u{FF47}mail.com", "ada@gma\u{2170}l.com", "ada@\u{FB01}rm.example",
        "ada@\u{41F}\u{43E}\u{447}\u{442}\u{430}.\u{440}\u{444}",
        // Everything that ASCII addresses may not be, either.
        "\u{FC}", "\u{FC}@", "@\u{FC}", "\u{FC}@b@c", "\u{FC} x@b.c", "<\u{FC}@b.c>", "\u{FC}@b.c\r\nBcc: x@y.z",
    ])
    func whatHasTwoSpellingsOrDoesNotShowIsRefused(_ address: String) {
        #expect(!isAccepted(address))
    }

    @Test func onlyCapitalsOfASCIIAreMapped() throws {
        let email = try #require(Email("\u{C4}DA@Ex\u{E4}mple.COM", form: .international))
        #expect(email.canonical == "\u{C4}da@ex\u{E4}mple.com" && email.address == "\u{C4}DA@Ex\u{E4}mple.COM")
        #expect(email != Email("\u{E4}da@ex\u{E4}mple.com", form: .international))
    }

    @Test func bytesThatAreNoTextAreRefused() {
        for bytes in [[0xC3], [0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            #expect(Email(Text(unchecked: bytes + [UInt8]("@example.com".utf8)), form: .international) == nil)
        }
    }

    @Test func lengthsAreCountedInBytes() {
        func address(local: Int, domain: Int) -> String {
            String(repeating: "\u{FC}", count: local) + "@" + String(repeating: "\u{FC}", count: domain)
        }
        #expect(isAccepted(address(local: 32, domain: 94) + "d"))
        #expect(!isAccepted(address(local: 32, domain: 95)))
        #expect(!isAccepted(address(local: 33, domain: 10)))
    }

    /// Every address that is accepted has one spelling, and stays the same when it is read from the store.
    @Test func whatIsAcceptedIsItsOwnCanonicalForm() {
        var random = SeededRandom.printed()
        var acceptedCount = 0
        for _ in 0..<20_000 {
            var text = ""
            for _ in 0..<1 + random.below(4) {
                let value = UInt32(1 + random.below(random.below(2) == 0 ? 0x600 : 0x10_FFFF))
                if let scalar = Unicode.Scalar(value) { text.unicodeScalars.append(scalar) }
            }
            guard let email = Email(Text("\(text)@d"), form: .international) else { continue }
            acceptedCount += 1
            #expect(NFC.composed(email.address.string).utf8.elementsEqual(email.address.bytes))
            #expect(Email(stored: email.address)?.canonical == email.canonical)
            #expect(Email(email.canonical, form: .international)?.canonical == email.canonical)
        }
        #expect(acceptedCount > 100)
    }
}
