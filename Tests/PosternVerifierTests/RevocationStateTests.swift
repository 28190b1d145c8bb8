import Base
import Messages
import TestSupport
import Testing
import Tokens

@testable import PosternVerifier

/// The state, compared with a list of everything that was ever told.
@Suite struct RevocationStateTests {
    private static let start = Timestamp(seconds: 1_800_000_000)

    private static func token(
        tenant: Text = "acme", uid: Text = "ada", session: UInt8 = 1, generation: Int64 = 100
    ) throws -> VerifiedToken {
        try VerifiedToken.forTests(
            tenantID: tenant, uid: uid, sessionID: [UInt8](repeating: session, count: 16), generation: generation)
    }

    private static func sessionID(_ byte: UInt8) -> Text { Hex.encode([UInt8](repeating: byte, count: 16)) }

    @Test func aGenerationIsRefusedBelowItsLimitOnly() throws {
        var state = RevocationState(retention: .hours(2), now: Self.start)
        state.apply(
            Revocation(kind: .user, tenantID: "acme", uid: "ada", validAfterMicros: 100), now: Self.start)
        #expect(state.refusal(of: try Self.token(generation: 99)) == .revoked)
        #expect(state.refusal(of: try Self.token(generation: 100)) == nil)
        #expect(state.refusal(of: try Self.token(uid: "bob", generation: 1)) == nil)
        #expect(state.refusal(of: try Self.token(tenant: "other", generation: 1)) == nil)
        // A revocation that comes late, in whatever order, takes nothing back.
        state.apply(Revocation(kind: .user, tenantID: "acme", uid: "ada", validAfterMicros: 50), now: Self.start)
        #expect(state.refusal(of: try Self.token(generation: 99)) == .revoked)
    }

    @Test func aTenantIsRefusedWhileItIsDisabledAndForGoodOnceItIsDeleted() throws {
        var state = RevocationState(retention: .hours(2), now: Self.start)
        let token = try Self.token()
        for (kind, expected) in [
            (RevocationKind.tenantDisabled, RevocationState.Refusal.tenantDisabled), (.tenantEnabled, nil),
            (.tenantDeleted, .tenantDeleted), (.tenantEnabled, .tenantDeleted),
        ] as [(RevocationKind, RevocationState.Refusal?)] {
            state.apply(Revocation(kind: kind, tenantID: "acme"), now: Self.start)
            #expect(state.refusal(of: token) == expected)
            #expect(state.refusal(of: try Self.token(tenant: "other")) == nil)
        }
    }

    @Test func whatCannotBeReadOrIsNotKnownIsNoReasonToRefuse() throws {
        var state = RevocationState(retention: .hours(2), now: Self.start)
        state.apply(Revocation(kind: .unspecified, tenantID: "acme", uid: "ada"), now: Self.start)
        for id in ["", "zz", "00", "no hex at all, and 32 bytes long"] as [Text] {
            state.apply(Revocation(kind: .session, tenantID: "acme", uid: "ada", sessionID: id), now: Self.start)
        }
        #expect(state.refusal(of: try Self.token()) == nil)
        #expect(state.entryCount == 0)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func aTokenIsRefusedAsLongAsItCouldLiveWhateverElseHappened(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var state = RevocationState(retention: .hours(2), now: Self.start)
        var now = Self.start
        var said: [(Timestamp, Revocation)] = []
        for _ in 0..<2_000 {
            now = now + .seconds(Int64.random(in: 0...60, using: &random))
            let uid = Text("user\(Int.random(in: 0..<20, using: &random))")
            let revocation =
                Bool.random(using: &random)
                ? Revocation(
                    kind: .user, tenantID: "acme", uid: uid,
                    validAfterMicros: Int64.random(in: 0..<1_000, using: &random))
                : Revocation(
                    kind: .session, tenantID: "acme", uid: uid,
                    sessionID: Self.sessionID(UInt8.random(in: 0...255, using: &random)))
            state.apply(revocation, now: now)
            said.append((now, revocation))
            let session = UInt8.random(in: 0...255, using: &random)
            let generation = Int64.random(in: 0..<1_000, using: &random)
            let isRevoked = said.contains { time, revocation in
                guard now - time <= .hours(2), revocation.uid == uid || revocation.kind == .session else {
                    return false
                }
                return revocation.kind == .user
                    ? generation < revocation.validAfterMicros : revocation.sessionID == Self.sessionID(session)
            }
            if isRevoked {
                let token = try Self.token(uid: uid, session: session, generation: generation)
                #expect(state.refusal(of: token) == .revoked, "seed \(seed)")
            }
        }
        // 20 users and 256 sessions in each of two generations, however many revocations were told.
        #expect(state.entryCount <= 2 * 276)
    }
}

/// When a verifier knows that its revocations are up to date.
@Suite struct FollowedRevocationsTests {
    @Test func aFeedIsHeardOfOnlyWhenNothingMoreFollows() {
        let start = Timestamp(seconds: 1_800_000_000)
        let begun = Instant.now
        let followed = FollowedRevocations(retention: .hours(2), at: begun)
        func hear(_ second: Int64, _ reason: SnapshotReason = .unspecified, continues: Bool) -> Duration? {
            let local = begun.advanced(by: .seconds(second))
            followed.apply(
                TokensWatchRevocationsResponse(
                    cursor: Text("\(second)"), timeMicros: (start + .seconds(second)).microseconds,
                    snapshotReason: reason, continues: continues), at: local)
            return followed.heard(local)?.staleness
        }
        #expect(hear(0, .noCursor, continues: true) == nil)
        #expect(!followed.isComplete && followed.cursor.isEmpty)
        #expect(hear(1, continues: false) == .zero)
        #expect(followed.isComplete && followed.cursor == "1")
        // After a minute away comes a long list of what was missed: in the middle of it, the state is as stale as
        // before.
        #expect(hear(60, continues: true) == .seconds(59))
        #expect(followed.cursor == "60")
        #expect(hear(61, continues: false) == .zero)
        // A snapshot replaces what is known only once it is complete.
        #expect(hear(90, .cursorUnknown, continues: true) == .seconds(29))
        #expect(followed.cursor == "61")
        #expect(hear(91, continues: false) == .zero)
    }

    /// The server's clock was two hours ahead when it gave the snapshot, and left out what was revoked before.
    @Test func afterALargeCorrectionAVerifierIsStaleUntilItHasANewSnapshot() {
        let start = Timestamp(seconds: 1_800_000_000)
        let begun = Instant.now
        let followed = FollowedRevocations(retention: .hours(2), at: begun)
        func hear(_ second: Int64, ahead: Duration = .zero, _ reason: SnapshotReason = .unspecified) -> Bool {
            followed.apply(
                TokensWatchRevocationsResponse(
                    cursor: "c", timeMicros: (start + .seconds(second) + ahead).microseconds, snapshotReason: reason),
                at: begun.advanced(by: .seconds(second)))
        }
        func staleness(_ second: Int64) -> Duration? { followed.heard(begun.advanced(by: .seconds(second)))?.staleness }
        #expect(!hear(0, ahead: .hours(2), .noCursor))
        #expect(!hear(10) && !hear(609) && followed.cursor == "c")
        #expect(hear(610) && followed.cursor.isEmpty)
        #expect(staleness(610) == .hours(2))
        #expect(!hear(620, .noCursor) && followed.cursor == "c")
        #expect(staleness(620) == .zero)
    }

    /// A server that started with a wrong clock sends its own time, too, until the clock is set right.
    @Test(arguments: [Duration.days(20), .zero - .days(20)])
    func `A server's clock that is wrong for a while makes nobody forget`(step: Duration) throws {
        let start = Timestamp(seconds: 1_800_000_000)
        let begun = Instant.now
        let followed = FollowedRevocations(retention: .hours(2), at: begun)
        for (second, offset) in [(0, Duration.zero), (1, step), (2, step + step), (3, .zero)] as [(Int64, Duration)] {
            followed.apply(
                TokensWatchRevocationsResponse(
                    revocations: [
                        Revocation(
                            kind: .session, uid: "u",
                            sessionID: Hex.encode([UInt8](repeating: UInt8(second), count: 16)))
                    ], cursor: "c", timeMicros: (start + offset).microseconds),
                at: begun.advanced(by: .seconds(second)))
        }
        #expect(followed.entryCount == 4)
    }
}

extension VerifiedToken {
    /// A verified token with these values, read from the payload that a token would have.
    static func forTests(tenantID: Text, uid: Text, sessionID: [UInt8], generation: Int64) throws -> VerifiedToken {
        let json = """
            {"iss":"i","aud":"a","sub":"\(uid)","user_id":"\(uid)","iat":1,"exp":2,"auth_time":1,"gen":\(generation),\
            "sid":"\(Hex.encode(sessionID))","firebase":{"sign_in_provider":"password","tenant":"\(tenantID)"}}
            """
        return try #require(VerifiedToken(payload: [UInt8](json.utf8), keyID: "k", issuer: "i", audience: "a"))
    }
}
