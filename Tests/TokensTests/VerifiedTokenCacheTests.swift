import Base
import Synchronization
import TestSupport
import Testing

@testable import Tokens

@Suite struct VerifiedTokenCacheTests {
    private let cache = VerifiedTokenCache(random: SeededRandom.source(seed: 1))
    private let token: VerifiedToken
    private let bytes = [UInt8]("header.payload.signature".utf8)
    private let now = TokenForge.now
    private let proof = VerifiedTokenCache.Proof(
        keySetNumber: 1, keyTimes: SigningKeyTimes(sequence: 1, createdAt: .zero, signsFrom: .zero))

    init() throws {
        token = try TokenForge().verifier.verify(TokenForge.token(), now: TokenForge.now)
    }

    /// The keys all lead to the same set.
    private func key(_ number: UInt64, low: UInt64 = 5) -> VerifiedTokenCache.Key {
        .init(signedByteCount: 14, signature: .init(low: low, high: number))
    }

    private func find(_ token: [UInt8], _ key: VerifiedTokenCache.Key) -> VerifiedToken? {
        cache.find(token, key, in: proof.keySetNumber, at: now)
    }

    @Test func aTokenIsFoundByTheWholeHashOfItsSignature() {
        cache.insert(token, proof, for: bytes, key(1))
        #expect(find(bytes, key(1)) === token)
        #expect(find(bytes, key(2)) == nil)
        #expect(find(bytes, key(1, low: 6)) == nil)
    }

    @Test func aTokenIsFoundByEachOfItsSignedBytes() throws {
        let genuine = TokenForge.token()
        let key = try #require(cache.key(of: genuine))
        cache.insert(token, proof, for: genuine, key)
        #expect(find(genuine, key) === token)
        for index in genuine.indices {
            var changed = genuine
            changed[index] ^= 1
            let found = cache.key(of: changed).flatMap { find(changed, $0) }
            #expect(found == nil, "byte \(index)")
        }
        for changed in [Array(genuine.dropLast()), Array(genuine.dropFirst()), genuine + [UInt8(ascii: "A")]] {
            #expect(cache.key(of: changed).flatMap { find(changed, $0) } == nil)
        }
    }

    @Test func theTokenUsedLongestAgoMakesRoom() {
        let count = UInt64(VerifiedTokenCache.tokensPerSetMax)
        for number in 1...count { cache.insert(token, proof, for: bytes, key(number)) }
        for number in 1...count { #expect(find(bytes, key(number)) != nil, "\(number)") }
        // The first token is used again, so that the second is now the one to go.
        #expect(find(bytes, key(1)) != nil)
        cache.insert(token, proof, for: bytes, key(count + 1))
        #expect(find(bytes, key(2)) == nil)
        for number in [1] + Array(3...count + 1) { #expect(find(bytes, key(number)) != nil, "\(number)") }
    }

    @Test func aTokenIsFoundAsLongAsItsKeyIsPublishedAndNotRetired() {
        let times = SigningKeyTimes(
            sequence: 1, createdAt: .zero, signsFrom: .zero, retiresAt: now + .microseconds(1))
        cache.insert(token, .init(keySetNumber: 7, keyTimes: times), for: bytes, key(1))
        #expect(cache.find(bytes, key(1), in: 7, at: now) === token)
        #expect(cache.find(bytes, key(1), in: 6, at: now) == nil)
        #expect(cache.find(bytes, key(1), in: 8, at: now) == nil)
        #expect(cache.find(bytes, key(1), in: 7, at: now + .microseconds(1)) == nil)
    }

    @Test func aTokenThatIsVerifiedAgainReplacesItself() throws {
        let other = try TokenForge().verifier.verify(TokenForge.token(), now: now)
        for number in 1...UInt64(VerifiedTokenCache.tokensPerSetMax) {
            cache.insert(token, proof, for: bytes, key(number))
        }
        cache.insert(other, proof, for: bytes, key(3))
        #expect(find(bytes, key(3)) === other)
        for number in 1...UInt64(VerifiedTokenCache.tokensPerSetMax) {
            #expect(find(bytes, key(number)) != nil, "\(number)")
        }
    }

    @Test(arguments: [(0, 1), (1, 1), (3, 3), (1_000, 16)])
    func threadsOfOnePartFindEachOthersTokens(threadCount: Int, partCount: Int) {
        let cache = VerifiedTokenCache(random: SeededRandom.source(seed: 1), threadCount: threadCount)
        cache.insert(token, proof, for: bytes, key(1))
        let here = OSThread.currentNumber
        for _ in 0..<20 {
            let found = Mutex<(number: Int, token: VerifiedToken?)>((0, nil))
            OSThread(name: "finds") {
                let token = cache.find(bytes, key(1), in: 1, at: now)
                found.withLock { $0 = (OSThread.currentNumber, token) }
            }.join()
            let (number, token) = found.withLock { $0 }
            #expect((token != nil) == (number % partCount == here % partCount), "thread \(number), not \(here)")
        }
    }

    @Test(arguments: [1, 3, 16]) func everyHashHasASetAndNoThreadRemembersMoreThanItsShare(threadCount: Int) {
        let cache = VerifiedTokenCache(random: SeededRandom.source(seed: 1), threadCount: threadCount)
        let keys = (0..<UInt64(20_000)).map { key($0, low: $0) } + [key(0, low: .max)]
        for key in keys {
            cache.insert(token, proof, for: bytes, key)
            #expect(cache.find(bytes, key, in: 1, at: now) === token)
        }
        let remembered = keys.count { cache.find(bytes, $0, in: 1, at: now) != nil }
        #expect(remembered == 1_024 / threadCount * VerifiedTokenCache.tokensPerSetMax)
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
