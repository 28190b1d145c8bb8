import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Tokens

@Suite struct KeySetTests {
    private static let key = SigningKey.generate(.edDSA)

    private func entry(
        _ id: Text, _ sequence: Int64 = 1, created: Int64, signsFrom: Int64, retires: Int64? = nil,
        key: SigningKey = Self.key
    ) -> KeySet.Entry {
        KeySet.Entry(
            id: id, publicKey: key.publicKey,
            times: SigningKeyTimes(
                sequence: sequence, createdAt: Timestamp(seconds: created), signsFrom: Timestamp(seconds: signsFrom),
                retiresAt: retires.map { Timestamp(seconds: $0) }))
    }

    private func signer(_ set: KeySet, _ seconds: Int64) -> Text? {
        set.signingEntry(at: Timestamp(seconds: seconds))?.id
    }

    @Test func anEmptySetSignsNothing() {
        let set = KeySet(entries: [])
        #expect(signer(set, 0) == nil)
        #expect(set.entry(id: "a", at: .zero) == nil)
        #expect(set.jwks == utf8(#"{"keys":[]}"#))
    }

    @Test func theNewestKeyThatMaySignDoes() {
        let set = KeySet(entries: [
            entry("a", created: 0, signsFrom: 0, retires: 300), entry("b", 2, created: 100, signsFrom: 200),
        ])
        #expect(set.entries.map(\.id) == ["b", "a"])
        #expect(signer(set, 0) == "a")
        #expect(signer(set, 199) == "a")
        #expect(signer(set, 200) == "b")
        #expect(signer(set, 1_000_000) == "b")
    }

    @Test func aClockThatWentBackStillFindsAKey() {
        let set = KeySet(entries: [
            entry("b", 2, created: 100, signsFrom: 200), entry("a", created: 50, signsFrom: 50, retires: 300),
        ])
        #expect(signer(set, 0) == "a")
    }

    @Test func aKeyVerifiesBeforeItSignsAndUntilItRetires() {
        let set = KeySet(entries: [
            entry("a", created: 0, signsFrom: 0, retires: 300), entry("b", 2, created: 100, signsFrom: 200),
        ])
        #expect(set.entry(id: "b", at: Timestamp(seconds: 100)) != nil)
        #expect(set.entry(id: "a", at: Timestamp(microseconds: 299_999_999)) != nil)
        #expect(set.entry(id: "a", at: Timestamp(seconds: 300)) == nil)
        #expect(set.entry(id: "c", at: .zero) == nil)
    }

    /// An urgent rotation while another key waits for its time: the urgent key signs from then on.
    @Test func aKeyThatWasReplacedBeforeItsTimeNeverSigns() {
        let set = KeySet(entries: [
            entry("a", created: 0, signsFrom: 0, retires: 1_000_000),
            entry("waiting", 2, created: 10, signsFrom: 500, retires: 7_220),
            entry("urgent", 3, created: 20, signsFrom: 20),
        ])
        // The urgent key signs before its making, too: the clock was set back.
        for seconds: Int64 in [19, 20, 499, 500, 7_219, 7_220, 1_000_000] { #expect(signer(set, seconds) == "urgent") }
    }

    @Test func aRetiredKeyNeverSigns() {
        let set = KeySet(entries: [
            entry("a", created: 0, signsFrom: 0), entry("b", 2, created: 10, signsFrom: 10, retires: 20),
        ])
        #expect(signer(set, 30) == "a")
    }

    @Test func keysOfOneMomentAreOrderedByTheirNumbers() {
        let set = KeySet(entries: [
            entry("a", created: 5, signsFrom: 5, retires: 7_205), entry("b", 2, created: 5, signsFrom: 5),
        ])
        #expect(signer(set, 5) == "b")
        #expect(signer(KeySet(entries: set.entries.reversed()), 5) == "b")
    }

    @Test(arguments: SigningAlgorithm.allCases) func theJWKSHoldsThePublicPartOnly(algorithm: SigningAlgorithm) throws {
        let key = TokenForge.key(algorithm)
        let set = KeySet(entries: [entry("k1", created: 0, signsFrom: 0, key: key)])
        let keys = try #require(try JSONValue(parsing: set.jwks)["keys"]?.array)
        #expect(keys.count == 1)
        #expect(keys[0]["kid"] == "k1" && keys[0]["use"] == "sig")
        #expect(keys[0]["alg"]?.text == Text(algorithm.rawValue))
        for member in key.publicKey.jwk.members { #expect(keys[0][Text("\(member.name)")]?.text == member.value) }
        for secret: Text in ["d", "p", "q", "dp", "dq", "qi", "k", "oth"] { #expect(keys[0][secret] == nil) }
        // The JWK is read back as the same key.
        let read = try VerificationKey(jwk: PublicJWK { keys[0][$0]?.text })
        #expect(read == key.publicKey)
    }

    @Test func theHeaderOfAKeysTokensIsFixed() {
        let header = entry("k1", created: 0, signsFrom: 0).tokenPrefix.dropLast()
        #expect(Base64.url.decode(header) == utf8(#"{"alg":"EdDSA","kid":"k1","typ":"JWT"}"#))
    }
}

@Suite struct PublishedKeySetTests {
    private func keySet(_ algorithms: SigningAlgorithm..., retiresAt: Timestamp? = nil) -> KeySet {
        KeySet(
            entries: algorithms.enumerated().map { index, algorithm in
                let key = TokenForge.key(algorithm).publicKey
                let times = SigningKeyTimes(
                    sequence: Int64(index), createdAt: .zero, signsFrom: .zero, retiresAt: retiresAt)
                return KeySet.Entry(id: key.keyID, publicKey: key, times: times)
            })
    }

    @Test func `A thread keeps its copy of the keys until other keys or times are published`() {
        let published = PublishedKeySet(keySet(.edDSA))
        let first = published.currentForThisThread
        #expect(first !== published.current && first.hasSameKeys(as: published.current))
        #expect(zip(first.entries, published.current.entries).allSatisfy { $0.publicKey !== $1.publicKey })
        #expect(published.currentForThisThread === first)
        published.publish(keySet(.edDSA))
        #expect(published.currentForThisThread === first)
        let later = [
            keySet(.edDSA, .es256), keySet(.edDSA, .es256, retiresAt: TokenForge.now), keySet(.es256, .edDSA),
            KeySet(entries: []), keySet(.edDSA),
        ]
        for keySet in later {
            published.publish(keySet)
            #expect(published.current === keySet)
            #expect(published.currentForThisThread.hasSameKeys(as: keySet))
            #expect(published.currentForThisThread.entries.map(\.tokenPrefix) == keySet.entries.map(\.tokenPrefix))
        }
    }

    /// Each thread has checked a token before, so that it has a copy of the keys. The second token is new to it.
    @Test func `A revoked key is refused on every thread at once, and the other keys are not`() async throws {
        let forge = TokenForge()
        let revoked = TokenForge.key(.edDSA).publicKey.keyID
        let known = TokenForge.token(.edDSA)
        let new = TokenForge.token(.edDSA, payload: TokenForge.payload.with("pad", "1"))
        let other = TokenForge.token(.es256)
        let threadCount = 24
        let (arrived, published) = (Semaphore(), Semaphore())
        let results = try await atOnce(threadCount) { number -> (before: [TokenError?], after: [TokenError?]) in
            let before = [known, other].map { forge.error($0) }
            if number == 0 {
                for _ in 1..<threadCount { arrived.wait() }
                forge.published.publish(
                    KeySet(entries: forge.published.current.entries.filter { $0.id != revoked }))
                for _ in 1..<threadCount { published.signal() }
            } else {
                arrived.signal()
                published.wait()
            }
            return (before, [known, new, other].map { forge.error($0) })
        }
        let refused: [TokenError?] = [.unknownKey, .unknownKey, nil]
        #expect(results.count == threadCount)
        for result in results {
            let (before, after) = try result.get()
            #expect(before.allSatisfy { $0 == nil } && after == refused)
        }
    }
}
