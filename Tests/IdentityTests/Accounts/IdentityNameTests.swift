import Base
import Crypto
import Messages
import Rules
import Store
import Testing

@testable import Identity

@Suite struct IdentityNameTests {
    /// Every name of parts up to two letters: 21 x 21 x 21, over letters that look like separators too.
    @Test func differentNamesHaveDifferentKeys() {
        let letters: [String] = ["a", "/", "\u{1}", "|"]
        let parts = [""] + letters + letters.flatMap { first in letters.map { first + $0 } }
        var keys: Set<[UInt8]> = []
        for provider in parts {
            for rawID in parts {
                for issuer in parts {
                    let name = IdentityName(
                        ProviderInfo(providerID: Text(provider), rawID: Text(rawID), issuer: Text(issuer)))
                    keys.insert(name.key("t").hash)
                }
            }
        }
        #expect(keys.count == parts.count * parts.count * parts.count)
    }

    /// The separator is a byte that no text can hold.
    @Test func noTextHoldsTheSeparator() {
        #expect([[0], [0x37, 0], [0, 0x37], [0x37, 0, 0x37]].allSatisfy { Text(validating: $0 as [UInt8]) == nil })
    }
}
