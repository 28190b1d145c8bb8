import Base
import Crypto
import Messages
import TestSupport
import Testing

@testable import Rules

/// Every refresh token there can be, presented to a session after every kind of change: 11,520 cases.
@Suite struct SessionChangeRulesTests {
    /// The change that moved the counter from 5 to 6.
    private enum Change: CaseIterable {
        case refresh, link, password, email

        var end: SessionEnd? {
            switch self {
            case .refresh, .link: nil
            case .password: .passwordChanged
            case .email: .signedOut
            }
        }
    }

    private enum Attempt: CaseIterable { case ofThePreviousRotation, ofTheNewest, unknown, none }

    private let now = Timestamp(seconds: 1_800_000_000)
    private let rotating = tenantSettings { $0.refreshMode = .rotate }
    private let reusing = tenantSettings { $0.refreshMode = .reuse }

    private func hash(_ attempt: Attempt) -> [UInt8] {
        switch attempt {
        case .ofThePreviousRotation: [UInt8](repeating: 1, count: 32)
        case .ofTheNewest: [UInt8](repeating: 2, count: 32)
        case .unknown: [UInt8](repeating: 3, count: 32)
        case .none: []
        }
    }

    /// A session whose fifth token was made by an attempt. It was changed `age` ago, and then refreshed `later`
    /// times. `isAttempt`: the change's idempotency key was an attempt, too.
    private func session(_ change: Change, isAttempt: Bool, age: Duration, later: Int) -> StoredSession {
        let time = now - age
        var session = StoredSession(
            tenantID: "acme", uid: "u1", createdAtMicros: (now - .days(1)).microseconds, signInProvider: "password",
            counter: 5, lastUsedAtMicros: (now - .hours(1)).microseconds,
            attemptHash: hash(.ofThePreviousRotation), rotatedAtMicros: (now - .hours(1)).microseconds)
        session.rotate(
            attemptHash: change == .refresh || isAttempt ? hash(.ofTheNewest) : [], .expired, now: time)
        if let end = change.end { session.endOlderTokens(end) }
        for _ in 0..<later { session.rotate(attemptHash: hash(.ofTheNewest), .expired, now: time) }
        return session
    }

    private func expected(
        _ change: Change, _ session: StoredSession, _ counter: UInt64, _ attempt: Attempt, age: Duration,
        _ settings: TenantSettings
    ) -> RefreshDecision {
        if counter == session.counter {
            var next = session
            next.lastUsedAtMicros = now.microseconds
            next.refreshCause = .expired
            if settings.refreshMode == .reuse {
                next.attemptHash = []
                return .reused(next)
            }
            next.counter += 1
            next.attemptHash = hash(attempt)
            next.rotatedAtMicros = now.microseconds
            return .rotated(next)
        }
        let hasNewestAttempt = !session.attemptHash.isEmpty && attempt == .ofTheNewest
        if counter + 1 == session.counter, hasNewestAttempt { return .repeatedAfterLoss }
        if counter < 6, let end = change.end {
            return .refused(end == .passwordChanged ? .passwordChanged : .signedOut)
        }
        if counter + 1 == session.counter {
            if settings.refreshMode == .rotate, age <= .seconds(10), age >= .zero {
                var graced = session
                graced.graceCounter = session.counter
                graced.graceBegunAtCounter = session.counter
                return .repeatedWithinGrace(graced, givesSuccessor: true)
            }
        }
        return .revokedByReuse(session.ended(.reuse, at: now))
    }

    @Test func everyTokenAfterEveryChangeIsDecidedByTheRules() {
        var count = 0
        let ages: [Duration] = [
            .zero, .seconds(10), .seconds(10) + .microseconds(1), .hours(3), .seconds(-10),
            .seconds(-10) - .microseconds(1),
        ]
        for (change, isAttempt) in Change.allCases.flatMap({ [($0, false), ($0, true)] }) {
            for (age, later) in ages.flatMap({ age in [0, 1, 3].map { (age, $0) } }) {
                let session = session(change, isAttempt: isAttempt, age: age, later: later)
                for counter: UInt64 in 0..<10 {
                    for (attempt, settings) in Attempt.allCases.flatMap({ [($0, rotating), ($0, reusing)] }) {
                        let found = session.refreshing(
                            presentedCounter: counter, attemptHash: hash(attempt), settings: settings, now: now)
                        let expected = expected(change, session, counter, attempt, age: age, settings)
                        #expect(
                            found == expected, "\(change), age \(age), \(later) later, token \(counter), \(attempt)")
                        count += 1
                    }
                }
            }
        }
        #expect(count == 11_520)
    }

    @Test func aSecondChangeMovesTheBoundOn() {
        var session = session(.password, isAttempt: false, age: .hours(1), later: 2)
        session.rotate(attemptHash: [], .emailChanged, now: now)
        session.endOlderTokens(.signedOut)
        for counter in 0..<session.counter {
            let decision = session.refreshing(
                presentedCounter: counter, attemptHash: [], settings: rotating, now: now)
            #expect(decision == .refused(.signedOut))
        }
    }

    @Test func aSessionThatIsGoneTellsByItsIDWhetherItExpired() {
        let settings = tenantSettings {
            $0.sessionIdleSeconds = 3_600
            $0.sessionAbsoluteSeconds = 7_200
        }
        let id = SessionID.make(at: now, random: .system)
        #expect(SessionID.time(of: id) == now)
        for (age, cause) in [
            (Duration.zero, RefreshDecision.RefusedCause.signedOut), (.hours(1), .signedOut),
            (.hours(1) + .milliseconds(1), .expired), (.days(10_000), .expired), (.hours(-5), .signedOut),
        ] {
            #expect(StoredSession.causeOfAbsence(ofSession: id, settings: settings, now: now + age) == cause)
        }
        // Ids of another form contain no time.
        for id in [[], [UInt8](repeating: 0, count: 16), [UInt8](repeating: 0xFF, count: 16)] {
            #expect(StoredSession.causeOfAbsence(ofSession: id, settings: settings, now: now) == .signedOut)
        }
    }
}
