import Base
import Crypto
import JSON
import Messages
import Reactor
import Store
import TestSupport
import Testing

@testable import Signing
@testable import Tokens

@Suite struct TokenSignerTests {
    private let clock = ManualClock(startingAt: Timestamp(seconds: 1_800_000_000))
    private let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
    private let events = KeyEvents()
    private static let other = SigningKey.generate(.edDSA)

    /// Runs `body` with a fresh signer over the store in `directory`.
    private func withSigner<Result>(
        at directory: String, sealing: SealingKey? = nil, _ body: (TokenSigner) async throws -> Result
    ) async throws -> Result {
        try await SigningTests.withSigner(at: directory, sealing: sealing ?? self.sealing, clock: clock.clock) {
            signer, _ in
            try await body(signer)
        }
    }

    private func withSigner<Result>(_ body: (TokenSigner) async throws -> Result) async throws -> Result {
        try await withTemporaryDirectory { try await withSigner(at: $0, body) }
    }

    private func verifier(_ signer: TokenSigner) -> IssuedTokenVerifier {
        IssuedTokenVerifier(
            keys: signer.published, issuer: "https://issuer.test/p", audience: "p", limits: Limits(),
            random: SeededRandom.source(seed: 2))
    }

    private func claims() -> IDTokenClaims { idTokenClaims(at: clock.clock.now()) }

    private func sign(_ signer: TokenSigner) async throws -> Text {
        try await signer.sign(claims(), deadline: .distantFuture)
    }

    private func signingID(_ signer: TokenSigner) -> Text? {
        signer.published.current.signingEntry(at: clock.clock.now())?.id
    }

    @Test func `A change of the keys reads only those that are new`() async throws {
        try await withSigner { signer in
            try await signer.start(algorithm: .edDSA, record: events.record)
            for _ in 0..<3 {
                _ = try await signer.rotate(algorithm: .edDSA, publishAhead: .zero, record: events.record)
            }
            #expect(signer.list().count == 4)
            #expect(signer.keysRead.value == 4)
        }
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func theFirstStartMakesAKeyThatSigns(algorithm: SigningAlgorithm) async throws {
        try await withSigner { signer in
            try await signer.start(algorithm: algorithm, record: events.record)
            let keys = signer.list()
            #expect(keys.count == 1 && keys[0].state == .signing)
            #expect(keys[0].algorithm == Text(algorithm.rawValue) && keys[0].retiresAtMicros == 0)
            #expect(events.list == ["signingKeyCreated \(keys[0].keyID)"])
            let token = try await sign(signer)
            #expect(try verifier(signer).verify(token.bytes, now: clock.clock.now()).uid == "u1")
        }
    }

    @Test func withoutAKeyNothingIsSigned() async throws {
        try await withSigner { signer in
            let failure = await #expect(throws: Failure.self) { try await sign(signer) }
            #expect(failure?.code == .unavailable && failure?.reason == "NO_SIGNING_KEY")
        }
    }

    @Test func aRestartFindsTheSameKeys() async throws {
        try await withTemporaryDirectory { directory in
            let (token, jwks) = try await withSigner(at: directory) { signer in
                try await signer.start(algorithm: .es256, record: events.record)
                _ = try await signer.rotate(algorithm: .edDSA, publishAhead: .hours(24), record: events.record)
                return (try await sign(signer), signer.published.current.jwks)
            }
            try await withSigner(at: directory) { signer in
                try await signer.start(algorithm: .rs256, record: events.record)
                #expect(signer.published.current.jwks == jwks)
                #expect(try verifier(signer).verify(token.bytes, now: clock.clock.now()).uid == "u1")
            }
            #expect(events.list.count == 2)
        }
    }

    @Test func underAnotherMasterKeyTheKeysStayShut() async throws {
        try await withTemporaryDirectory { directory in
            try await withSigner(at: directory) { try await $0.start(algorithm: .es256, record: events.record) }
            let other = SealingKey(Secret([UInt8](repeating: 8, count: 32)))
            try await withSigner(at: directory, sealing: other) { signer in
                await #expect(throws: CryptoError.self) {
                    try await signer.start(algorithm: .es256, record: events.record)
                }
                #expect(signer.published.current.entries.isEmpty)
            }
        }
    }

    /// A key that somebody imported as a secret of password hashes is sealed under an id as well, which is not a key's.
    @Test func `A private key under an id that is not its own is refused`() async throws {
        try await withTemporaryDirectory { directory in
            try await withSigner(at: directory) { try await $0.start(algorithm: .edDSA, record: events.record) }
            let id: Text = "AAAAAAAAAAAAAAAAAAAAAA"
            let sealed = try sealing.seal(Self.other.exportDER(), context: id.bytes, random: .system)
            let store = try openTestStore(at: directory, tables: SigningTables.all)
            try await store.write { transaction in
                let stored = StoredSigningKey(
                    keyID: id, algorithm: "EdDSA", sealedPrivateKey: sealed, tokenUse: .idToken, sequence: 2)
                try transaction.put(SigningTables.keys, TextKey(id), stored)
            }
            close(store)
            try await withSigner(at: directory) { signer in
                await #expect(throws: CryptoError.notAuthentic) {
                    try await signer.start(algorithm: .edDSA, record: events.record)
                }
                #expect(signer.published.current.entries.isEmpty)
            }
        }
    }

    @Test func aKeyIsPublishedBeforeItSignsAndVerifiesAfterwards() async throws {
        try await withSigner { signer in
            try await signer.start(algorithm: .es256, record: events.record)
            let first = try #require(signingID(signer))
            let verifier = verifier(signer)
            let old = try await sign(signer)

            let next = try await signer.rotate(algorithm: nil, publishAhead: .hours(24), record: events.record)
            #expect(next.state == .published && next.algorithm == "ES256")
            #expect(signingID(signer) == first)
            #expect(signer.published.current.entries.count == 2)

            clock.advance(by: .hours(24) - .microseconds(1))
            #expect(signingID(signer) == first)
            let last = try await sign(signer)
            clock.advance(by: .microseconds(1))
            #expect(signingID(signer) == next.keyID)
            #expect(signer.list().map(\.state) == [.signing, .retired])
            // The last token of the old key lives as long as any.
            clock.advance(by: .hours(1) - .seconds(2))
            #expect(try verifier.verify(last.bytes, now: clock.clock.now()).uid == "u1")
            #expect(throws: TokenError.expired) { try verifier.verify(old.bytes, now: clock.clock.now()) }

            try await signer.retireExpired(record: events.record)
            #expect(signer.published.current.entries.count == 2)
            clock.advance(by: .hours(1) + .seconds(2))
            try await signer.retireExpired(record: events.record)
            #expect(signer.published.current.entries.map(\.id) == [next.keyID])
            #expect(events.list.last == "signingKeyRetired \(first)")
            try await signer.retireExpired(record: events.record)
            #expect(events.list.count == 3)
        }
    }

    @Test func anUrgentRotationSignsAtOnce() async throws {
        try await withSigner { signer in
            try await signer.start(algorithm: .es256, record: events.record)
            let waiting = try await signer.rotate(algorithm: nil, publishAhead: .minutes(30), record: events.record)
            let urgent = try await signer.rotate(algorithm: .edDSA, publishAhead: .zero, record: events.record)
            #expect(urgent.state == .signing)
            #expect(signingID(signer) == urgent.keyID)
            clock.advance(by: .minutes(30))
            // The overtaken key would sign tokens that its retirement cuts short.
            #expect(signingID(signer) == urgent.keyID && signingID(signer) != waiting.keyID)
        }
    }

    @Test func aClockThatIsSetBackBringsNoOldKeyBack() async throws {
        try await withSigner { signer in
            try await signer.start(algorithm: .edDSA, record: events.record)
            let verifier = verifier(signer)
            clock.advance(by: .hours(5))
            let late = try await sign(signer)
            clock.step(by: .hours(-4))
            let newest = try await signer.rotate(algorithm: nil, publishAhead: .zero, record: events.record)
            clock.step(by: .hours(-1))
            #expect(signer.list().first { $0.state == .signing }?.keyID == newest.keyID)
            // The token from before is good to its end, which is still to come.
            clock.advance(by: .hours(6) - .seconds(1))
            try await signer.retireExpired(record: events.record)
            #expect(try verifier.verify(late.bytes, now: clock.clock.now()).uid == "u1")
        }
    }

    @Test func keysOfBeforeThereWereNumbersAreOlderThanAllOthers() async throws {
        try await withTemporaryDirectory { directory in
            let first = try await withSigner(at: directory) { signer in
                try await signer.start(algorithm: .edDSA, record: events.record)
                return try #require(signingID(signer))
            }
            let store = try openTestStore(at: directory, tables: SigningTables.all)
            try await store.write { transaction in
                var stored = try transaction.get(SigningTables.keys, TextKey(first))!
                stored.sequence = 0
                try transaction.put(SigningTables.keys, TextKey(first), stored)
            }
            close(store)
            try await withSigner(at: directory) { signer in
                try await signer.start(algorithm: .edDSA, record: events.record)
                #expect(signingID(signer) == first)
                let next = try await signer.rotate(algorithm: nil, publishAhead: .zero, record: events.record)
                #expect(signingID(signer) == next.keyID)
                #expect(signer.list().map(\.keyID) == [next.keyID, first])
            }
        }
    }

    /// A verifier that is given more keys than it reads knows none of the newer ones.
    @Test func thereAreNeverMoreKeysThanVerifiersRead() async throws {
        try await withSigner { signer in
            func rotate() async throws {
                _ = try await signer.rotate(algorithm: .es256, publishAhead: .zero, record: events.record)
            }
            try await signer.start(algorithm: .es256, record: events.record)
            for _ in 1..<KeySet.countMax {
                try signer.checkRoomForKey()
                try await rotate()
            }
            let refused = await #expect(throws: Failure.self) { try await rotate() }
            #expect(refused?.reason == "TOO_MANY_SIGNING_KEYS")
            let noRoom = #expect(throws: Failure.self) { try signer.checkRoomForKey() }
            #expect(noRoom?.reason == "TOO_MANY_SIGNING_KEYS")
            #expect(KeySet(parsing: signer.published.current.jwks)?.entries.count == KeySet.countMax)
            // A key that leaked is replaced all the same.
            let leaked = try #require(signingID(signer))
            let revoked = try await signer.revoke(leaked, validateOnly: false, record: events.record)
            #expect(revoked?.successor != nil && signer.published.current.entries.count == KeySet.countMax)
            clock.advance(by: .hours(3))
            try await signer.retireExpired(record: events.record)
            try await rotate()
            #expect(signer.published.current.entries.count == 2)
        }
    }

    /// Only what is signed on the pool is worth beginning early.
    @Test(arguments: SigningAlgorithm.allCases)
    func `A token that was begun is a token like any other`(_ algorithm: SigningAlgorithm) async throws {
        try await withSigner { signer in
            #expect(signer.begin(claims(), deadline: .distantFuture, trace: nil) == nil)
            try await signer.start(algorithm: algorithm, record: events.record)
            let begun = signer.begin(claims(), deadline: .distantFuture, trace: nil)
            #expect((begun != nil) == (algorithm == .rs256))
            guard let token = try await begun?.value() else { return }
            #expect(try verifier(signer).verify(token.bytes, now: clock.clock.now()).uid == "u1")
        }
    }

    @Test func aRotationThatCannotBeRecordedChangesNothing() async throws {
        struct Refused: Error {}
        try await withSigner { signer in
            try await signer.start(algorithm: .es256, record: events.record)
            let before = signer.published.current.jwks
            await #expect(throws: Refused.self) {
                try await signer.rotate(algorithm: nil, publishAhead: .zero) { _, _, _ in throw Refused() }
            }
            #expect(signer.published.current.jwks == before)
        }
    }
}

private func close(_ store: Store) { store.close() }
