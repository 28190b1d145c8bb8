import Base
import TestSupport
import Testing

@testable import Tokens

@Suite struct VerifiedTokenCacheTests {
    private let cache = VerifiedTokenCache(random: SeededRandom.source(seed: 1))
    private let token: VerifiedToken
    private let bytes = [UInt8]("header.payload.signature".utf8)

    init() throws {
        token = try TokenForge().verifier.verify(TokenForge.token(), now: TokenForge.now)
    }

    /// The keys all lead to the same set.
    private func key(_ number: UInt64, low: UInt64 = 5) -> VerifiedTokenCache.Key {
        .init(signedByteCount: 14, signature: .init(low: low, high: number))
    }

    @Test func aTokenIsFoundByTheWholeHashOfItsSignature() {
        cache.insert(token, for: bytes, key(1))
        #expect(cache.find(bytes, key(1)) === token)
        #expect(cache.find(bytes, key(2)) == nil)
        #expect(cache.find(bytes, key(1, low: 6)) == nil)
    }

    @Test func aTokenIsFoundByEachOfItsSignedBytes() throws {
        let genuine = TokenForge.token()
        let key = try #require(cache.key(of: genuine))
        cache.insert(token, for: genuine, key)
        #expect(cache.find(genuine, key) === token)
        for index in genuine.indices {
            var changed = genuine
            changed[index] ^= 1
            let found = cache.key(of: changed).flatMap { cache.find(changed, $0) }
            #expect(found == nil, "byte \(index)")
        }
        for changed in [Array(genuine.dropLast()), Array(genuine.dropFirst()), genuine + [UInt8(ascii: "A")]] {
            #expect(cache.key(of: changed).flatMap { cache.find(changed, $0) } == nil)
        }
    }

    @Test func theTokenUsedLongestAgoMakesRoom() {
        let count = UInt64(VerifiedTokenCache.tokensPerSetMax)
        for number in 1...count { cache.insert(token, for: bytes, key(number)) }
        for number in 1...count { #expect(cache.find(bytes, key(number)) != nil, "\(number)") }
        // The first token is used again, so that the second is now the one to go.
        #expect(cache.find(bytes, key(1)) != nil)
        cache.insert(token, for: bytes, key(count + 1))
        #expect(cache.find(bytes, key(2)) == nil)
        for number in [1] + Array(3...count + 1) { #expect(cache.find(bytes, key(number)) != nil, "\(number)") }
    }

    @Test func everyHashHasASet() {
        for low in [0, 1_023, 1_024, .max] as [UInt64] {
            cache.insert(token, for: bytes, key(0, low: low))
            #expect(cache.find(bytes, key(0, low: low)) === token)
        }
    }

    @Test func tokensDifferInTheHashesOfTheirSignatures() {
        #expect(cache.key(of: bytes)?.signedByteCount == 14)
        #expect(cache.key(of: bytes)?.signature == cache.key(of: bytes)?.signature)
        #expect(cache.key(of: bytes)?.signature != cache.key(of: Array(bytes.dropLast()))?.signature)
        let other = VerifiedTokenCache(random: SeededRandom.source(seed: 2))
        #expect(cache.key(of: bytes)?.signature != other.key(of: bytes)?.signature)
    }

    @Test(arguments: ["", "nothing", ".", "header.payload"])
    func whatHasNoThreePartsIsNoToken(_ text: String) { #expect(cache.key(of: [UInt8](text.utf8)) == nil) }

    @Test func partsMayBeEmpty() {
        #expect(cache.key(of: [UInt8]("..".utf8))?.signedByteCount == 1)
        #expect(cache.key(of: [UInt8]("a.b.c.d".utf8))?.signedByteCount == 3)
    }
}
