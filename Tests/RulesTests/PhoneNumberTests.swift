import Base
import Crypto
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct PhoneNumberTests {
    /// Numbers and regions from the plans of the countries, and from what libphonenumber says of them.
    @Test(
        arguments: [
            ("+14155550123", "US"), ("+16135550123", "CA"), ("+18765550123", "JM"), ("+442079460000", "GB"),
            ("+441481960194", "GG"), ("+4915112345678", "DE"), ("+390669812345", "VA"), ("+390612345678", "IT"),
            ("+79161234567", "RU"), ("+77012345678", "KZ"), ("+358181234567", "AX"), ("+2250123456789", "CI"),
            ("+38344123456", "XK"), ("+8613800138000", "CN"), ("+919876543210", "IN"), ("+5511987654321", "BR"),
        ] as [(Text, String)])
    func `A number has the region of its plan`(_ text: Text, _ region: String) throws {
        let number = try #require(PhoneNumber(text))
        #expect(number.text == text && number.region?.text.string == region)
    }

    @Test func `Every spelling of a number is one number`() {
        let spellings: [Text] = [
            "+14155550123", "+1 415 555 0123", "+1 (415) 555-0123", "+1.415.555.0123", "+1-4155550123",
        ]
        #expect(Set(spellings.map { PhoneNumber($0)?.text }) == ["+14155550123"])
    }

    @Test(
        arguments: [
            "", "+", "14155550123", "0044 20 7946 0000", "+0123456789", "+44 (0)20 7946 0000", "+1415555012",
            "+141555501234", "+999123456789", "+1 415 555 0123 x7", "++14155550123", "+1\u{00A0}4155550123",
            "+１４１５５５５０１２３", "+1/415/5550123", "+14155550123\u{0}", "+49                                 1",
        ] as [Text])
    func `What may be another number, or none, is refused`(_ text: Text) {
        #expect(PhoneNumber(text) == nil)
    }

    @Test func `The whole plan is read`() {
        #expect(CallingCodes.plan.regions.count == 245)
        #expect(PhoneRegion("DE") != nil && PhoneRegion("de") == nil && PhoneRegion("AQ") == nil)
        #expect(PhoneNumber("+881612345678") != nil && PhoneNumber("+881612345678")?.region == nil)
    }

    @Test func `Whatever is accepted is E.164, and is itself again`() {
        var random = SeededRandom.printed()
        let bytes = [UInt8]("+0123456789 -.()x\u{7F}".utf8) + [0, 0xC2, 0xA0, 0xFF]
        var acceptedCount = 0
        for _ in 0..<200_000 {
            let digits = (0..<random.below(18)).map { _ in bytes[random.below(bytes.count)] }
            let text = Text(unchecked: [UInt8(ascii: "+")] + digits.filter { _ in random.below(20) > 0 })
            guard let number = PhoneNumber(text) else { continue }
            acceptedCount += 1
            #expect(number.text.bytes.first == UInt8(ascii: "+") && (5...16).contains(number.text.byteCount))
            #expect(number.text.bytes.dropFirst().allSatisfy { (0x30...0x39).contains($0) })
            #expect(PhoneNumber(number.text) == number)
        }
        #expect(acceptedCount > 50)
    }

    @Test func `Each digit of a code is as likely as the others`() {
        var counts = [[Int]](repeating: [Int](repeating: 0, count: 10), count: 6)
        for _ in 0..<20_000 {
            for (place, digit) in SMSRules.makeCode(.system).enumerated() { counts[place][Int(digit - 0x30)] += 1 }
        }
        #expect(counts.joined().allSatisfy { (1_700...2_300).contains($0) })
    }

    @Test func `Regions are those allowed, without those blocked`() throws {
        func regions(_ allowed: [Text], _ blocked: [Text]) -> SMSRegions {
            SMSRegions(Messages.Tenant(allowedSMSRegions: allowed, blockedSMSRegions: blocked))
        }
        let (germany, korea) = (try #require(PhoneRegion("DE")), try #require(PhoneRegion("KP")))
        #expect(regions([], []).allows(germany) && !regions([], []).names(germany))
        #expect(regions(["DE"], []).allows(germany) && regions(["DE"], []).names(germany))
        #expect(!regions(["DE"], []).allows(korea) && !regions([], ["KP"]).allows(korea))
        #expect(!regions(["DE"], ["DE"]).allows(germany))
    }
}
