import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct EmailTests {
    private func isAccepted(_ text: String) -> Bool { Email(Text(text), form: .ascii) != nil }

    @Test func theAddressStaysAsTypedAndTheCanonicalFormIsLowerCase() {
        let email = Email("Ada.Lovelace+Mail@Example.COM", form: .ascii)
        #expect(email?.address == "Ada.Lovelace+Mail@Example.COM")
        #expect(email?.canonical == "ada.lovelace+mail@example.com")
    }

    @Test func addressesAreEqualWhenOnlyTheirCaseDiffers() {
        #expect(Email("A@B.c", form: .ascii) == Email("a@b.C", form: .ascii))
        #expect(
            Set([Email("A@b.c", form: .ascii), Email("a@B.c", form: .ascii), Email("a@b.d", form: .ascii)]).count == 2)
        // No dot rules, no plus rules.
        #expect(Email("a.b@c.d", form: .ascii) != Email("ab@c.d", form: .ascii))
        #expect(Email("a+x@c.d", form: .ascii) != Email("a@c.d", form: .ascii))
    }

    @Test func ofEveryByteOnlyCapitalsChange() throws {
        for byte in UInt8.min ... .max {
            guard let email = Email(Text(unchecked: [byte, UInt8(ascii: "@"), UInt8(ascii: "d")]), form: .ascii) else {
                continue
            }
            let expected = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
            #expect(email.canonical.bytes == [expected, UInt8(ascii: "@"), UInt8(ascii: "d")])
        }
    }

    @Test func whateverIsAcceptedIsCanonicalOnceAndForAll() {
        var random = SeededRandom.printed()
        let characters =
            [UInt8]("ABCXYZabcxyz019.!#$%&'*+/=?^_`{|}~-@@  \u{7F}\"<>,;:\\()[]".utf8) + [0, 9, 0x80, 0xC3, 0xFF]
        var acceptedCount = 0
        for _ in 0..<20_000 {
            let bytes = (0..<random.below(12)).map { _ in characters[random.below(characters.count)] }
            guard let email = Email(Text(unchecked: bytes), form: .ascii) else { continue }
            acceptedCount += 1
            let lowered = bytes.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
            #expect(email.canonical.bytes == lowered && email.address.bytes == bytes)
            #expect(Email(email.canonical, form: .ascii)?.canonical == email.canonical)
            #expect(bytes.allSatisfy { (0x21...0x7E).contains($0) })
            #expect(bytes.count { $0 == UInt8(ascii: "@") } == 1)
        }
        #expect(acceptedCount > 100)
    }

    @Test(arguments: [
        "\u{212A}elvin@example.com", "ada@example.\u{212A}om", "\u{130}@example.com", "m\u{131}ke@example.com",
        "stra\u{DF}e@example.com", "\u{FF41}da@example.com", "\u{430}da@example.com", "cafe\u{301}@example.com",
        "ada\u{200B}@example.com", "ada@example\u{3002}com", "ada\u{FF20}example.com", "\u{FEFF}ada@example.com",
    ])
    func letterlikeCharactersOfOtherScriptsAreRefused(address: String) {
        #expect(!isAccepted(address))
    }

    @Test(arguments: [
        "", "a", "a@", "@a", "@", "@@", "aaa", "a@b@c", "a@@b", "@a@b", "a@b@", "a b@c.d", " a@b.c", "a@b.c ", "a@b\tc",
        "a@b.c\n", "\na@b.c", "a@b.c\r\nBcc: x@y.z", "\"a b\"@c.d", "a(c)@b.d", "<a@b.c>", "a@[127.0.0.1]", "a:b@c.d",
        "a;b@c.d", "a@b,c@d", "a,b@c.d", "a\\@b.c", "a@b.c\u{7F}", "a@b\u{1}.c", "Ada <a@b.c>",
    ])
    func whatIsNoPlainAddressIsRefused(address: String) {
        #expect(!isAccepted(address))
    }

    @Test func nulIsRefusedEvenInBytesNobodyChecked() {
        #expect(Email(Text(unchecked: [UInt8]("victim@example.com\0@evil.test".utf8)), form: .ascii) == nil)
        #expect(Email(Text(unchecked: [UInt8]("victim@example.com\0".utf8)), form: .ascii) == nil)
    }

    @Test func lengthsAreLimited() {
        #expect(isAccepted("a@b"))
        func address(local: Int, domain: Int) -> String {
            // Labels of one byte, and of two at the end if the count is even.
            let dotted = (0..<domain).map { $0 % 2 == 0 || $0 == domain - 1 ? "d" : "." }.joined()
            return String(repeating: "l", count: local) + "@" + dotted
        }
        #expect(isAccepted(address(local: 64, domain: 189)))
        #expect(!isAccepted(address(local: 64, domain: 190)))
        #expect(!isAccepted(address(local: 65, domain: 10)))
        #expect(isAccepted(address(local: 1, domain: 252)))
        #expect(!isAccepted(address(local: 1, domain: 253)))
        #expect(!isAccepted(address(local: 1, domain: 1_000_000)))
        var limits = Limits()
        limits.emailMax = 5
        #expect(Email("a@b.c", form: .ascii, limits: limits) != nil)
        #expect(Email("a@b.cd", form: .ascii, limits: limits) == nil)
    }

    @Test(arguments: [
        "a@example.com.", "a@b..de", "a@.de", "a@.", "a@-b.de", "a@b-.de", "a@b.de-",
        "a@" + String(repeating: "d", count: 64) + ".de",
    ])
    func aDomainThatIsNoneIsRefusedForNewAddressesAndFoundInOldOnes(address: String) {
        #expect(!isAccepted(address))
        #expect(Email(Text(address), form: .international) == nil)
        #expect(Email(Text(address), form: .toFind)?.canonical == Text(address))
        #expect(Email(stored: Text(address))?.canonical == Text(address))
    }

    @Test func anInternationalDomainHasOneSpelling() {
        #expect(isAccepted("a@xn--mnchen-3ya.de"))
        #expect(Email("a@b.XN--mnchen-3ya.de", form: .international) == nil)
        #expect(Email("a@m\u{FC}nchen.de", form: .international) != nil)
        #expect(Email("a@xn--mnchen-3ya.de", form: .toFind) != nil)
    }

    @Test func whatIsAcceptedAsNewHasADomainOfOneSpellingAndIsFound() {
        var random = SeededRandom.printed()
        let parts = ["a", "B", "-", ".", "xn--", "m\u{FC}", "3ya"]
        for _ in 0..<5_000 {
            let domain = (0..<random.below(8)).map { _ in parts[random.below(parts.count)] }.joined()
            let text = Text("a@" + domain)
            for form in [Email.Form.ascii, .international] {
                guard let email = Email(text, form: form) else { continue }
                let canonical = email.canonical.string
                #expect(!canonical.hasSuffix(".") && !canonical.contains("@.") && !canonical.contains(".."))
                #expect(form == .ascii || !(canonical.contains("@xn--") || canonical.contains(".xn--")))
                #expect(Email(text, form: .toFind) == email && Email(email.canonical, form: .toFind) == email)
            }
        }
    }
}
