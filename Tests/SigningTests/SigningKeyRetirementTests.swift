import Base
import Crypto
import Messages
import Reactor
import TestSupport
import Testing

@testable import Signing
@testable import Tokens

/// Keys that are replaced and revoked while their tokens live.
@Suite struct SigningKeyRetirementTests {
    private let clock = ManualClock(startingAt: Timestamp(seconds: 1_800_000_000))
    private let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
    private let events = KeyEvents()

    /// Runs `body` with a fresh signer over a store of its own.
    private func withSigner<Result>(_ body: (TokenSigner) async throws -> Result) async throws -> Result {
        try await withTemporaryDirectory { directory in
            try await SigningTests.withSigner(at: directory, sealing: sealing, clock: clock.clock) { signer, _ in
                try await body(signer)
            }
        }
    }

    private func verifier(_ signer: TokenSigner) -> IssuedTokenVerifier {
        IssuedTokenVerifier(
            keys: signer.published, issuer: "https://issuer.test/p", audience: "p", limits: Limits(),
            random: SeededRandom.source(seed: 2))
    }

    private func sign(_ signer: TokenSigner) async throws -> Text {
        try await signer.sign(idTokenClaims(at: clock.clock.now()), deadline: .distantFuture)
    }

    private func signingID(_ signer: TokenSigner) -> Text? {
        signer.published.current.signingEntry(at: clock.clock.now())?.id
    }

    /// Whatever rotations and revocations come in whatever order, a fresh token verifies for all of its life, unless
    /// its own key is revoked. With the first seed, a key once signed again after a newer key of the same moment had
    /// overtaken it.
    @Test(arguments: [12_849_393_143_111_864_778, nil] as [UInt64?])
    func everyTokenOutlivesEveryRotation(_ seed: UInt64?) async throws {
        var random = seed.map { SeededRandom(seed: $0) } ?? SeededRandom.printed()
        try await withSigner { signer in
            try await signer.start(algorithm: .edDSA, record: events.record)
            let verifier = verifier(signer)
            var alive: [(token: Text, keyID: Text?, expiresAt: Timestamp)] = []
            for _ in 0..<80 {
                // The first seed is from before keys were revoked here.
                switch random.below(seed == nil ? 5 : 4) {
                case 0:
                    let ahead = Duration.minutes([0, 0, 10, 90, 1_440][random.below(5)])
                    _ = try await signer.rotate(algorithm: nil, publishAhead: ahead, record: events.record)
                case 1: try await signer.retireExpired(record: events.record)
                case 2: clock.advance(by: .minutes(Int64([0, 1, 29, 59, 240, 1_500][random.below(6)])))
                case 4:
                    let leaked = signer.list()[random.below(signer.list().count)].keyID
                    _ = try await signer.revoke(leaked, validateOnly: false, record: events.record)
                    alive.removeAll { $0.keyID == leaked }
                default:
                    let token = try await sign(signer)
                    let keyID = signer.published.current.entry(of: token.bytes, at: clock.clock.now())?.id
                    alive.append((token, keyID, clock.clock.now() + TokenSigner.tokenLifetime))
                }
                let now = clock.clock.now()
                alive.removeAll { Timestamp(seconds: $0.expiresAt.seconds) <= now }
                for (token, _, _) in alive {
                    #expect(throws: Never.self) { try verifier.verify(token.bytes, now: now) }
                }
            }
        }
    }

    /// The present key signs for as long as the revoked key and the next one wait.
    @Test(arguments: [false, true])
    func whenAWaitingKeyIsRevokedThePresentKeyRetiresLater(isOvertaken: Bool) async throws {
        try await withSigner { signer in
            try await signer.start(algorithm: .edDSA, record: events.record)
            let present = try #require(signingID(signer))
            let leaked = try await signer.rotate(algorithm: nil, publishAhead: .hours(1), record: events.record)
            let middle = Duration.minutes(isOvertaken ? 30 : 90)
            let other = try await signer.rotate(algorithm: nil, publishAhead: middle, record: events.record)
            _ = try await signer.rotate(algorithm: nil, publishAhead: .hours(48), record: events.record)
            for id in [other.keyID, leaked.keyID] {
                let revoked = try await signer.revoke(id, validateOnly: false, record: events.record)
                #expect(revoked?.successor == nil)
            }
            clock.advance(by: .hours(48) - .microseconds(1))
            try await signer.retireExpired(record: events.record)
            #expect(signingID(signer) == present)
            let last = try await sign(signer)
            clock.advance(by: .hours(1) - .seconds(1))
            try await signer.retireExpired(record: events.record)
            #expect(try verifier(signer).verify(last.bytes, now: clock.clock.now()).uid == "u1")
        }
    }
}
