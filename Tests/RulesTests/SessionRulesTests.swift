import Base
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct SessionRulesTests {
    private enum Attempt: CaseIterable { case same, other, none }

    private static let now = Timestamp(seconds: 1_800_000_000)
    private static let same = [UInt8](repeating: 1, count: 32)
    private static let other = [UInt8](repeating: 2, count: 32)

    private let now = now
    private let rotating = tenantSettings { $0.refreshMode = .rotate }
    private let reusing = tenantSettings { $0.refreshMode = .reuse }

    /// A session whose fifth token is current; the attempt `same` made that token, `age` ago.
    private func session(age: Duration, attempt: [UInt8] = same) -> StoredSession {
        StoredSession(
            tenantID: "acme", uid: "u1", createdAtMicros: (now - .days(1)).microseconds,
            authTimeMicros: (now - .days(1)).microseconds, signInProvider: "password", counter: 5,
            lastUsedAtMicros: (now - age).microseconds, attemptHash: attempt,
            rotatedAtMicros: (now - age).microseconds)
    }

    private func hash(_ attempt: Attempt) -> [UInt8] {
        switch attempt {
        case .same: Self.same
        case .other: Self.other
        case .none: []
        }
    }

    private static let ages: [Duration] = [
        .zero, .seconds(10) - .microseconds(1), .seconds(10), .seconds(10) + .microseconds(1), .hours(2), .seconds(-5),
    ]
    private static let counters: [UInt64] = [0, 1, 3, 4, 5, 6, .max - 1, .max]

    // MARK: A tenant that rotates

    @Test func everyTokenInEveryStateIsDecidedByTheRules() {
        for age in Self.ages {
            for counter in Self.counters {
                for attempt in Attempt.allCases {
                    let session = session(age: age)
                    let decision = session.refreshing(
                        presentedCounter: counter, attemptHash: hash(attempt), settings: rotating, now: now)
                    let isInGrace = age >= .zero && age <= .seconds(10)
                    let expected: RefreshDecision =
                        switch (counter, attempt) {
                        case (5, _): .rotated(rotated(session, hash(attempt)))
                        case (4, .same): .repeatedAfterLoss
                        case (4, _) where isInGrace: .repeatedWithinGrace(graced(session), givesSuccessor: true)
                        default: .revokedByReuse(session.ended(.reuse, at: now))
                        }
                    #expect(decision == expected, "counter \(counter), attempt \(attempt), age \(age)")
                }
            }
        }
    }

    private func graced(_ session: StoredSession) -> StoredSession {
        var graced = session
        graced.graceCounter = session.counter
        graced.graceBegunAtCounter = session.counter
        return graced
    }

    private func rotated(_ session: StoredSession, _ attemptHash: [UInt8]) -> StoredSession {
        var rotated = session
        rotated.counter += 1
        rotated.lastUsedAtMicros = now.microseconds
        rotated.rotatedAtMicros = now.microseconds
        rotated.attemptHash = attemptHash
        rotated.refreshCause = .expired
        return rotated
    }

    @Test func theGraceIsCountedFromTheRotationNotFromTheLastUse() {
        // The tenant reused tokens for a while: its sessions were used without being rotated.
        var session = session(age: .hours(2))
        session.lastUsedAtMicros = now.microseconds
        let decision = session.refreshing(presentedCounter: 4, attemptHash: [], settings: rotating, now: now)
        #expect(decision == .revokedByReuse(session.ended(.reuse, at: now)))
    }

    /// Two nodes' clocks differ, so that another node's rotation may seem to lie ahead.
    @Test(arguments: [
        (Duration.seconds(-4), true), (.seconds(-4) - .microseconds(1), false), (.seconds(-1), true), (.zero, true),
        (.seconds(10), true), (.seconds(10) + .microseconds(1), false),
    ])
    func theGraceReachesAsFarAsClocksDiffer(age: Duration, isInGrace: Bool) {
        let session = session(age: age)
        let decision = session.refreshing(
            presentedCounter: 4, attemptHash: [], settings: rotating, now: now, clockDifference: .seconds(4))
        let inGrace = RefreshDecision.repeatedWithinGrace(graced(session), givesSuccessor: true)
        #expect(decision == (isInGrace ? inGrace : .revokedByReuse(session.ended(.reuse, at: now))))
    }

    @Test func noAttemptIsNotTheSameAsNoAttempt() {
        let session = session(age: .hours(1), attempt: [])
        let decision = session.refreshing(presentedCounter: 4, attemptHash: [], settings: rotating, now: now)
        #expect(decision == .revokedByReuse(session.ended(.reuse, at: now)))
    }

    @Test func theFirstTokenHasNoPredecessor() {
        var session = session(age: .hours(1), attempt: [])
        session.counter = 1
        let decision = session.refreshing(presentedCounter: 0, attemptHash: [], settings: rotating, now: now)
        #expect(decision == .revokedByReuse(session.ended(.reuse, at: now)))
    }

    @Test func theCounterMayWrapWithoutATrap() {
        var session = session(age: .hours(1))
        session.counter = .max
        guard
            case .rotated(let rotated) = session.refreshing(
                presentedCounter: .max, attemptHash: Self.other, settings: rotating, now: now)
        else {
            Issue.record("not rotated")
            return
        }
        #expect(rotated.counter == 0)
    }

    // MARK: A tenant that does not rotate

    @Test func theCurrentTokenIsUsedAgainAndAgain() {
        for attempt in Attempt.allCases {
            let session = session(age: .hours(3), attempt: [])
            let decision = session.refreshing(
                presentedCounter: 5, attemptHash: hash(attempt), settings: reusing, now: now)
            var used = session
            used.lastUsedAtMicros = now.microseconds
            used.refreshCause = .expired
            #expect(decision == .reused(used))
        }
    }

    /// Every age of the last use, together with everything else in the record that a use would change.
    @Test func aUseIsRecordedWhenTheLastOneIsOld() {
        for (idleSeconds, step): (Int64, Duration) in [
            (30 * 86_400, .hours(1)), (86_400, .hours(1)), (300, .milliseconds(12_500)),
        ] {
            let settings = tenantSettings {
                $0.refreshMode = .reuse
                $0.sessionIdleSeconds = idleSeconds
            }
            let young = [Duration.zero, .microseconds(1), step - .microseconds(1)]
            for age in young + [step, .seconds(idleSeconds), .microseconds(-1), .hours(-3)] {
                var recorded = session(age: .hours(20), attempt: [])
                recorded.lastUsedAtMicros = (now - age).microseconds
                recorded.refreshCause = .expired
                var used = recorded
                used.lastUsedAtMicros = now.microseconds
                #expect(
                    Self.newest(recorded, settings) == (young.contains(age) ? .reusedAgain : .reused(used)),
                    "age \(age)")

                var withAttempt = recorded
                withAttempt.attemptHash = Self.same
                var afterAChange = recorded
                afterAChange.refreshCause = .passwordChanged
                // Rotated and never presented since: a client that lost the answer may still ask for it again.
                var unused = recorded
                unused.rotatedAtMicros = recorded.lastUsedAtMicros
                for session in [withAttempt, afterAChange, unused] {
                    used.rotatedAtMicros = session.rotatedAtMicros
                    #expect(Self.newest(session, settings) == .reused(used), "age \(age)")
                }
            }
        }
    }

    private static func newest(_ session: StoredSession, _ settings: TenantSettings) -> RefreshDecision {
        session.refreshing(presentedCounter: 5, attemptHash: other, settings: settings, now: now)
    }

    @Test func anyOtherTokenIsAReplay() {
        for age in Self.ages {
            for counter in Self.counters where counter != 5 {
                for attempt in Attempt.allCases where !(counter == 4 && attempt == .same) {
                    let session = session(age: age)
                    let decision = session.refreshing(
                        presentedCounter: counter, attemptHash: hash(attempt), settings: reusing, now: now)
                    #expect(decision == .revokedByReuse(session.ended(.reuse, at: now)))
                }
            }
        }
    }

    /// The setting changed between a rotation and the repetition of its lost answer.
    @Test func anAnswerThatGotLostBeforeRotationWasSwitchedOffSignsNobodyOut() {
        let session = session(age: .hours(1))
        let repeated = session.refreshing(presentedCounter: 4, attemptHash: Self.same, settings: reusing, now: now)
        #expect(repeated == .repeatedAfterLoss)
        // Once the successor was presented, its predecessor is a replay, whatever the attempt.
        guard
            case .reused(let used) = session.refreshing(
                presentedCounter: 5, attemptHash: [], settings: reusing, now: now)
        else {
            Issue.record("not reused")
            return
        }
        let later = now + .minutes(1)
        for settings in [reusing, rotating] {
            let replayed = used.refreshing(
                presentedCounter: 4, attemptHash: Self.same, settings: settings, now: later)
            #expect(replayed == .revokedByReuse(used.ended(.reuse, at: later)))
        }
    }

    // MARK: The end of a session

    @Test(arguments: [
        (SessionEnd.reuse, RefreshDecision.RefusedCause.revokedByReuse), (.passwordChanged, .passwordChanged),
        (.signedOut, .signedOut), (.admin, .admin),
    ])
    func anEndedSessionRefusesEverythingWithItsReason(end: SessionEnd, cause: RefreshDecision.RefusedCause) {
        for counter in Self.counters {
            for attempt in Attempt.allCases {
                for settings in [rotating, reusing] {
                    let ended = session(age: .zero).ended(end, at: now)
                    let decision = ended.refreshing(
                        presentedCounter: counter, attemptHash: hash(attempt), settings: settings, now: now)
                    #expect(decision == .refused(cause))
                }
            }
        }
    }

    @Test func theReasonStaysWhenTheSessionExpiresLater() {
        let ended = session(age: .days(100)).ended(.passwordChanged, at: now)
        #expect(ended.refusedCause(settings: rotating, now: now + .days(1_000)) == .passwordChanged)
    }

    @Test func endingKeepsTheRestOfTheSession() {
        let before = session(age: .zero)
        var after = before
        after.end = .admin
        after.endedAtMicros = now.microseconds
        #expect(before.ended(.admin, at: now) == after)
    }

    @Test func theReasonsAreSpelledAsClientsKnowThem() {
        let causes: [RefreshDecision.RefusedCause] = [.revokedByReuse, .passwordChanged, .signedOut, .admin, .expired]
        #expect(
            causes.map(\.rawValue) == ["REVOKED_BY_REUSE", "PASSWORD_CHANGED", "SIGNED_OUT", "ADMIN", "EXPIRED"])
    }

    @Test func anIdleSessionExpires() {
        let settings = tenantSettings { $0.sessionIdleSeconds = 3_600 }
        for (age, cause) in [
            (Duration.hours(1), nil), (.hours(1) + .microseconds(1), .expired), (.days(10_000), .expired),
        ] as [(Duration, RefreshDecision.RefusedCause?)] {
            let session = session(age: age)
            #expect(session.refusedCause(settings: settings, now: now) == cause)
            let decision = session.refreshing(presentedCounter: 5, attemptHash: [], settings: settings, now: now)
            #expect((decision == .refused(.expired)) == (cause == .expired))
        }
    }

    @Test func aSessionThatWasNeverUsedIsIdleSinceItsCreation() {
        var session = session(age: .zero)
        session.lastUsedAtMicros = 0
        let settings = tenantSettings { $0.sessionIdleSeconds = 86_400 }
        #expect(session.refusedCause(settings: settings, now: now) == nil)
        #expect(session.refusedCause(settings: settings, now: now + .microseconds(1)) == .expired)
    }

    @Test func noSessionOutlivesItsAbsoluteLifetimeHoweverBusy() {
        let settings = tenantSettings { $0.sessionAbsoluteSeconds = 86_400 }
        let session = session(age: .zero)
        #expect(session.refusedCause(settings: settings, now: now) == nil)
        #expect(session.refusedCause(settings: settings, now: now + .microseconds(1)) == .expired)
    }

    @Test func timesAtTheEndsOfTheNumbersDoNotTrap() {
        for created in [Int64.min, 0, .max] {
            for used in [Int64.min, 0, .max] {
                for time in [Int64.min, 0, .max] {
                    var session = session(age: .zero)
                    session.createdAtMicros = created
                    session.lastUsedAtMicros = used
                    for counter in Self.counters {
                        _ = session.refreshing(
                            presentedCounter: counter, attemptHash: Self.other, settings: rotating,
                            now: Timestamp(microseconds: time))
                    }
                }
            }
        }
    }
}
