import Base
import Crypto
import Messages
import Reactor
import Store
import TestSupport
import Testing

@testable import Signing
@testable import Tokens

/// Keys that the server replaces by itself: every state of the newest key at every time, and whole lives of keys on a
/// clock that also jumps.
@Suite struct SigningKeyRotationTests {
    private static let quarterly = SigningKeyRotation(period: .days(90))
    private static let start = Timestamp(seconds: 1_800_000_000)

    // MARK: The table

    /// A newest key, and whether its successor is due at each of `times`.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let createdAt: Duration
        let signsFrom: Duration
        let isDue: [Bool]
    }

    /// From `start`: a clock that was set back, the key's beginning, both sides of the publication 83 days later and of
    /// the end of the period, and more than a year.
    private static let times: [Duration] = [
        .zero - .days(1), .zero, .days(83) - .microseconds(1), .days(83), .days(90) - .microseconds(1), .days(90),
        .days(366),
    ]

    private static let rows = [
        Row(
            testDescription: "signs from its making on", createdAt: .zero, signsFrom: .zero,
            isDue: [true, false, false, true, true, true, true]),
        Row(
            testDescription: "is published a week ahead", createdAt: .zero, signsFrom: .days(7),
            isDue: [true, false, false, false, false, true, true]),
        Row(
            testDescription: "made by a clock within the slack", createdAt: .minutes(5), signsFrom: .minutes(5),
            isDue: [true, false, false, false, true, true, true]),
        Row(
            testDescription: "made by a clock a year ahead", createdAt: .days(365), signsFrom: .days(365),
            isDue: [true, true, true, true, true, true, false]),
        Row(
            testDescription: "waits for longer than any admin can ask for", createdAt: .zero, signsFrom: .days(365),
            isDue: [true, true, true, true, true, true, false]),
    ]

    @Test(arguments: rows)
    func theNextKeyIsMadeAtItsTime(_ row: Row) {
        let newest = SigningKeyTimes(
            sequence: 1, createdAt: Self.start + row.createdAt, signsFrom: Self.start + row.signsFrom)
        for (time, isDue) in zip(Self.times, row.isDue) {
            let now = Self.start + time
            #expect(Self.quarterly.isDue(after: newest, keyCount: 1, at: now) == isDue, "\(time)")
            #expect(Self.quarterly.isDue(after: newest, keyCount: KeySet.countMax - 1, at: now) == isDue, "\(time)")
            #expect(!Self.quarterly.isDue(after: newest, keyCount: KeySet.countMax, at: now), "\(time)")
            #expect(!SigningKeyRotation.byHand.isDue(after: newest, keyCount: 1, at: now), "\(time)")
        }
    }

    @Test(arguments: [(0, 0), (1, 12), (2, 24), (14, 168), (90, 168), (3_650, 168)] as [(Int64, Int64)])
    func aKeyIsPublishedAWeekAheadOrHalfThePeriod(days: Int64, hours: Int64) {
        #expect(SigningKeyRotation(period: .days(days)).publishAhead == .hours(hours))
    }

    // MARK: Lives of keys

    private let clock = ManualClock(startingAt: Self.start)
    private let events = KeyEvents()

    /// Runs `body` with signers of the same use over one store.
    private func withSigners<Result>(
        count: Int = 1, rotation: SigningKeyRotation = Self.quarterly, _ body: ([TokenSigner]) async throws -> Result
    ) async throws -> Result {
        try await withTemporaryDirectory { directory in
            let loop = EventLoop(name: "signer")
            loop.start()
            let pool = WorkerPool(name: "sign", workers: 1, queueMax: 64, queueMaxPerTenant: 64)
            let store = try openTestStore(at: directory, tables: SigningTables.all)
            defer { end(loop, pool, store) }
            let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
            let signers = (0..<count).map { _ in
                TokenSigner(
                    use: .idToken, store: store, sealing: sealing, pool: pool, loop: loop, clock: clock.clock,
                    random: .system, rotation: rotation)
            }
            for signer in signers { try await signer.start(algorithm: .es256, record: events.record) }
            return try await body(signers)
        }
    }

    private func rotateIfDue(_ signer: TokenSigner) async throws -> SigningKeyInfo? {
        try await signer.rotateIfDue(record: events.record)
    }

    private func token(of signer: TokenSigner) async throws -> Text {
        try await signer.sign(idTokenClaims(at: clock.clock.now()), deadline: .distantFuture)
    }

    private func states(_ signer: TokenSigner) -> [SigningKeyState] { signer.list().map(\.state) }

    @Test func aKeyIsMadeAWeekAheadOncePerPeriod() async throws {
        try await withSigners { signers in
            let signer = signers[0]
            for round in 0..<3 {
                let present = try #require(signer.list().first)
                let signsFrom = Timestamp(microseconds: present.signsFromMicros)
                let dueAt = signsFrom + .days(83)
                #expect(present.rotatesAtMicros == dueAt.microseconds)
                clock.advance(by: (dueAt - clock.clock.now()) - .microseconds(1))
                #expect(try await rotateIfDue(signer) == nil)
                #expect(!signer.isNextKeyDue)
                clock.advance(by: .microseconds(1))
                #expect(signer.isNextKeyDue)
                let next = try #require(try await rotateIfDue(signer))
                #expect(next.state == .published && next.algorithm == "ES256")
                #expect(next.signsFromMicros == (signsFrom + .days(90)).microseconds)
                #expect(states(signer) == [.published, .signing])
                #expect(signer.list().map { $0.rotatesAtMicros > 0 } == [true, false])
                // While the next key waits, none is made.
                clock.advance(by: .days(7) - .microseconds(1))
                #expect(try await rotateIfDue(signer) == nil)
                #expect(states(signer) == [.published, .signing])
                clock.advance(by: .microseconds(1))
                #expect(try await rotateIfDue(signer) == nil)
                #expect(states(signer) == [.signing, .retired])
                clock.advance(by: .hours(2))
                try await signer.retireExpired(record: events.record)
                #expect(signer.list().map(\.keyID) == [next.keyID])
                #expect(events.list.count == 3 + 2 * round)
            }
        }
    }

    @Test func byHandNoKeyIsMade() async throws {
        try await withSigners(rotation: .byHand) { signers in
            clock.advance(by: .days(10_000))
            let key = try await rotateIfDue(signers[0])
            #expect(key == nil && !signers[0].isNextKeyDue)
            #expect(signers[0].list().map(\.rotatesAtMicros) == [0] && signers[0].nextKeyAt == nil)
        }
    }

    @Test func aKeyMadeByHandBeginsThePeriodAnewAndKeepsItsAlgorithm() async throws {
        try await withSigners { signers in
            let signer = signers[0]
            clock.advance(by: .days(80))
            _ = try await signer.rotate(algorithm: .edDSA, publishAhead: .hours(1), record: events.record)
            clock.advance(by: .days(83))
            #expect(try await rotateIfDue(signer) == nil)
            clock.advance(by: .hours(1))
            #expect(try await rotateIfDue(signer)?.algorithm == "EdDSA")
        }
    }

    @Test(arguments: [false, true])
    func aRevokedKeysSuccessorBeginsThePeriodAnew(isWaiting: Bool) async throws {
        try await withSigners { signers in
            let signer = signers[0]
            clock.advance(by: .days(83))
            let waiting = try await isWaiting ? rotateIfDue(signer) : nil
            let id = try #require(waiting ?? signer.list().first).keyID
            let revoked = try await signer.revoke(id, validateOnly: false, record: events.record)
            let successor = try #require(revoked?.successor)
            #expect(successor.state == (isWaiting ? .published : .signing))
            #expect(try await rotateIfDue(signer) == nil)
            let signsFrom = Timestamp(microseconds: successor.signsFromMicros)
            #expect(signer.nextKeyAt == signsFrom + .days(83))
        }
    }

    @Test func withAsManyKeysAsVerifiersReadTheNextOneWaits() async throws {
        try await withSigners { signers in
            let signer = signers[0]
            for _ in 1..<KeySet.countMax {
                _ = try await signer.rotate(algorithm: nil, publishAhead: .zero, record: events.record)
            }
            clock.advance(by: .days(83))
            #expect(try await rotateIfDue(signer) == nil)
            #expect(signer.list().count == KeySet.countMax)
            try await signer.retireExpired(record: events.record)
            #expect(try await rotateIfDue(signer) != nil)
            #expect(signer.list().count == 2)
        }
    }

    /// A clock that was believed to be a year ahead makes one key. When it is right again, that key is not waited for.
    @Test(arguments: [Duration.zero, .days(7)])
    func aClockThatWasAheadStopsNothing(publishAhead: Duration) async throws {
        try await withSigners { signers in
            let signer = signers[0]
            clock.step(by: .days(365))
            #expect(try await rotateIfDue(signer) != nil)
            #expect(try await rotateIfDue(signer) == nil)
            if publishAhead == .zero {
                _ = try await signer.rotate(algorithm: nil, publishAhead: .zero, record: events.record)
            }
            clock.step(by: .zero - .days(365))
            let late = try await token(of: signer)
            let next = try #require(try await rotateIfDue(signer))
            #expect(next.createdAtMicros == clock.clock.now().microseconds)
            #expect(try await rotateIfDue(signer) == nil)
            let verifier = IssuedTokenVerifier(
                keys: signer.published, issuer: "https://issuer.test/p", audience: "p", limits: Limits(),
                random: SeededRandom.source(seed: 2))
            clock.advance(by: .hours(1) - .seconds(1))
            try await signer.retireExpired(record: events.record)
            #expect(try verifier.verify(late.bytes, now: clock.clock.now()).uid == "u1")
            clock.advance(by: .days(7))
            #expect(signer.list().first { $0.state == .signing }?.keyID == next.keyID)
            clock.advance(by: .days(83))
            #expect(try await rotateIfDue(signer) != nil)
        }
    }

    @Test func ofTwoSignersOneMakesTheNextKey() async throws {
        try await withSigners(count: 2) { signers in
            let record = events.record
            clock.advance(by: .days(83))
            let made = try await withThrowingTaskGroup(of: SigningKeyInfo?.self) { group in
                for signer in signers + signers { group.addTask { try await signer.rotateIfDue(record: record) } }
                var count = 0
                for try await key in group where key != nil { count += 1 }
                return count
            }
            #expect(made == 1 && events.kinds == [.signingKeyCreated, .signingKeyCreated])
            #expect(signers.map { $0.list().count } == [2, 2])
        }
    }

    @Test func aKeyThatCannotBeRecordedIsNotMade() async throws {
        struct Refused: Error {}
        try await withSigners { signers in
            clock.advance(by: .days(83))
            await #expect(throws: Refused.self) {
                try await signers[0].rotateIfDue { _, _, _ in throw Refused() }
            }
            #expect(signers[0].list().count == 1 && signers[0].isNextKeyDue)
        }
    }
}
