import Base
import TestSupport
import Testing

@testable import Tokens

@Suite struct VerifiedTokenCacheTests {
    private let cache = VerifiedTokenCache(random: SeededRandom.source(seed: 1))
    private let token: VerifiedToken

    init() throws {
        token = try TokenForge().verifier.verify(TokenForge.token(), now: TokenForge.now)
    }

    /// They all lead to the same set.
    private func fingerprint(_ number: UInt64) -> VerifiedTokenCache.Fingerprint { .init(low: 5, high: number) }

    @Test func aTokenIsFoundByItsWholeFingerprint() {
        cache.insert(token, under: fingerprint(1))
        #expect(cache.find(fingerprint(1)) === token)
        #expect(cache.find(fingerprint(2)) == nil)
        #expect(cache.find(.init(low: 6, high: 1)) == nil)
    }

    @Test func theTokenUsedLongestAgoMakesRoom() {
        let count = UInt64(VerifiedTokenCache.tokensPerSetMax)
        for number in 1...count { cache.insert(token, under: fingerprint(number)) }
        for number in 1...count { #expect(cache.find(fingerprint(number)) != nil, "\(number)") }
        // The first is used again, so that the second is now the one to go.
        #expect(cache.find(fingerprint(1)) != nil)
        cache.insert(token, under: fingerprint(count + 1))
        #expect(cache.find(fingerprint(2)) == nil)
        for number in [1] + Array(3...count + 1) { #expect(cache.find(fingerprint(number)) != nil, "\(number)") }
    }

    @Test func everyFingerprintHasASet() {
        for low in [0, 1_023, 1_024, .max] as [UInt64] {
            let fingerprint = VerifiedTokenCache.Fingerprint(low: low, high: 0)
            cache.insert(token, under: fingerprint)
            #expect(cache.find(fingerprint) === token)
        }
    }

    @Test func tokensDifferInTheirFingerprints() {
        let bytes = TokenForge.token()
        #expect(cache.fingerprint(of: bytes) == cache.fingerprint(of: bytes))
        #expect(cache.fingerprint(of: bytes) != cache.fingerprint(of: Array(bytes.dropLast())))
        let other = VerifiedTokenCache(random: SeededRandom.source(seed: 2))
        #expect(cache.fingerprint(of: bytes) != other.fingerprint(of: bytes))
    }
}
