import TestSupport
import Testing

@testable import Rules

@Suite struct KnownAddressesTests {
    @Test func sixteenAddressesAreRememberedTheLatestLast() {
        var known = KnownAddresses()
        for address in 1...17 { known.remember(UInt64(address)) }
        known.remember(3)
        #expect(!known.contains(1))
        for address in 2...17 { #expect(known.contains(UInt64(address))) }
        known.remember(18)
        #expect(!known.contains(2) && known.contains(3))
    }

    /// Compares with a plain list, after each step through the stored form.
    @Test func itIsTheListOfTheLatest() {
        var random = SeededRandom.printed()
        var known = KnownAddresses()
        var list: [UInt64] = []
        for _ in 0..<2_000 {
            let address = UInt64(random.below(25)) &* 0x9E37_79B9_7F4A_7C15
            known.remember(address)
            list.removeAll { $0 == address }
            list = (list + [address]).suffix(16)
            known = KnownAddresses(stored: known.bytes)
            #expect(known.bytes.count == list.count * 8)
            #expect(list.allSatisfy { known.contains($0) })
        }
    }

    @Test func whatIsStoredInAnotherFormDoesNotTrap() {
        for count in 0...200 {
            var known = KnownAddresses(stored: [UInt8](repeating: 7, count: count))
            #expect(known.bytes.count <= 128 && known.bytes.count.isMultiple(of: 8))
            known.remember(1)
            #expect(known.contains(1))
        }
    }
}
