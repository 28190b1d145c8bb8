import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct EndUserAddressTests {
    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("::FFFF:c000:0201", "192.0.2.1"),
        ("0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"), ("2001:DB8::1", "2001:db8::1"),
        ("2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"), ("::", "::"), ("::1", "::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("0:0:0:0:0:ffff:255.255.255.255", "255.255.255.255"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ])
    func eachAddressHasOneSpelling(_ written: Text, _ canonical: Text) throws {
        let address = try #require(EndUserAddress(written))
        #expect(address.text == canonical)
        #expect(EndUserAddress(canonical) == address)
    }

    @Test(
        arguments: [
            "", " ", "192.0.2", "192.0.2.1 ", " 192.0.2.1", "192.0.2.1.1", "192.0.2.256", "192.0.2.01", "0xc0.0.2.1",
            "3221225985", "192.0.2.1:443", "[2001:db8::1]", "2001:db8::1%eth0", "fe80::1%1", "2001:db8::1/64", ":::",
            "1::2::3",
            "2001:db8", "g::1", "localhost", "example.com", "２001:db8::1",
            "0000:0000:0000:0000:0000:0000:0000:0000:0000:00001",
        ] as [Text])
    func whatIsNoAddressIsNone(_ written: Text) { #expect(EndUserAddress(written) == nil) }

    @Test func whatCountsAsOneSource() throws {
        func network(_ written: Text) throws -> [UInt8] { try #require(EndUserAddress(written)).network }
        #expect(try network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::9"))
        #expect(try network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
        #expect(try network("192.0.2.1") != network("192.0.2.2"))
        #expect(try network("::ffff:192.0.2.1") == network("192.0.2.1"))
        #expect(try network("::1") != network("0.0.0.1"))
    }

    /// Every spelling that a random address can have comes out as the same one.
    @Test func aThousandSpellingsOfOneAddressAreOne() throws {
        var random = SeededRandom.printed()
        var count = 0
        for _ in 0..<50 {
            let groups = (0..<8).map { _ in random.below(3) == 0 ? 0 : random.below(65_536) }
            let plain = try #require(EndUserAddress(Text(groups.map { String($0, radix: 16) }.joined(separator: ":"))))
            for _ in 0..<20 {
                let written = groups.map { group -> String in
                    let hex = String(group, radix: 16, uppercase: random.below(2) == 0)
                    return String(repeating: "0", count: random.below(5 - hex.utf8.count)) + hex
                }
                #expect(EndUserAddress(Text(written.joined(separator: ":"))) == plain)
                count += 1
            }
            #expect(EndUserAddress(plain.text) == plain)
        }
        #expect(count == 1_000)
    }
}
