import Base
import Messages
import TestSupport
import Testing

@testable import Rules

/// Random lives of a session, with a client whose answers get lost, a second tab, and a thief.
@Suite struct SessionRulesModelTests {
    private let settings = tenantSettings { tenant in
        tenant.refreshMode = .rotate
        tenant.sessionIdleSeconds = 30 * 86_400
        tenant.sessionAbsoluteSeconds = 157_680_000
    }

    /// The server's side: the session's record, and the counters that it handed out.
    private struct Server {
        var session: StoredSession
        var now = Timestamp(seconds: 1_800_000_000)
        let settings: TenantSettings

        init(settings: TenantSettings) {
            self.settings = settings
            session = StoredSession(
                tenantID: "acme", uid: "u", createdAtMicros: now.microseconds, authTimeMicros: now.microseconds,
                counter: 1, lastUsedAtMicros: now.microseconds)
        }

        /// Answers as `UserSession` does, with the counter of the token that it hands out, or nil for a refusal.
        mutating func refresh(_ counter: UInt64, attempt: [UInt8]) -> (decision: RefreshDecision, next: UInt64?) {
            let decision = session.refreshing(
                presentedCounter: counter, attemptHash: attempt, settings: settings, now: now)
            switch decision {
            case .rotated(let changed), .reused(let changed):
                session = changed
                return (decision, changed.counter)
            case .revokedByReuse(let changed):
                session = changed
                return (decision, nil)
            case .repeatedAfterLoss, .repeatedWithinGrace, .reusedAgain: return (decision, session.counter)
            case .refused: return (decision, nil)
            }
        }
    }

    @Test func anHonestClientIsNeverSignedOutHoweverManyAnswersGetLost() {
        var random = SeededRandom.printed()
        for _ in 0..<200 {
            var server = Server(settings: settings)
            var held: UInt64 = 1
            for _ in 0..<60 {
                // Each refresh keeps one attempt id until an answer comes, which is within the idle time.
                let attempt = random.bytes(32)
                let lostCount = random.below(3) == 0 ? random.below(25) : 0
                for round in 0...lostCount {
                    server.now = server.now + .seconds(Int64(random.below(86_400)))
                    let (decision, next) = server.refresh(held, attempt: attempt)
                    guard let next else {
                        Issue.record("signed out: \(decision)")
                        return
                    }
                    if round == lostCount { held = next }
                }
            }
        }
    }

    @Test func atMostOneSuccessorIsAliveAtAnyTime() {
        var random = SeededRandom.printed()
        for _ in 0..<300 {
            var server = Server(settings: settings)
            let attempts = (0..<3).map { _ in random.bytes(32) } + [[]]
            for _ in 0..<40 {
                server.now = server.now + [.zero, .seconds(1), .seconds(9), .minutes(5)][random.below(4)]
                let before = server.session
                let highest = before.counter
                let counter = UInt64(random.below(Int(highest) + 3))
                let (decision, next) = server.refresh(counter, attempt: attempts[random.below(4)])
                switch decision {
                case .rotated:
                    #expect(counter == highest && next == highest + 1)
                case .repeatedAfterLoss, .repeatedWithinGrace:
                    // Every caller that is given a token here is given the same one, and nothing changes.
                    #expect(counter + 1 == highest && next == highest && server.session == before)
                case .revokedByReuse: #expect(server.session.end == .reuse && next == nil)
                case .refused(let cause): #expect(cause == .revokedByReuse && before.end == .reuse)
                case .reused, .reusedAgain: Issue.record("this tenant rotates")
                }
            }
        }
    }

    @Test func aReplayBeyondTheRulesEndsTheSessionForEverybody() {
        var random = SeededRandom.printed()
        for _ in 0..<300 {
            var server = Server(settings: settings)
            var held: UInt64 = 1
            for _ in 0..<random.below(10) + 2 {
                server.now = server.now + .minutes(Int64(random.below(1_000) + 1))
                held = server.refresh(held, attempt: random.bytes(32)).next ?? 0
            }
            // A thief has any older token. It comes after the grace, since for the last but one it has no attempt to
            // show.
            server.now = server.now + .seconds(11)
            let stolen = UInt64(random.below(Int(held)))
            let (decision, next) = server.refresh(stolen, attempt: random.below(2) == 0 ? [] : random.bytes(32))
            #expect(next == nil && decision == .revokedByReuse(server.session))
            for counter in 0...held + 1 {
                #expect(server.refresh(counter, attempt: random.bytes(32)).decision == .refused(.revokedByReuse))
            }
        }
    }

    @Test func aThiefWhoIsFasterIsFoundOutByTheOwnersNextRefresh() {
        var random = SeededRandom.printed()
        for _ in 0..<100 {
            var server = Server(settings: settings)
            // The thief refreshes with the current token, and perhaps goes on.
            var stolen: UInt64 = 1
            for _ in 0...random.below(3) {
                stolen = server.refresh(stolen, attempt: random.bytes(32)).next ?? 0
                server.now = server.now + .minutes(1)
            }
            let (_, next) = server.refresh(1, attempt: random.bytes(32))
            #expect(next == nil)
            #expect(server.refresh(stolen, attempt: random.bytes(32)).decision == .refused(.revokedByReuse))
        }
    }

    @Test func twoTabsThatRefreshAtOnceHoldTheSameToken() {
        var random = SeededRandom.printed()
        var server = Server(settings: settings)
        var held: UInt64 = 1
        for _ in 0..<500 {
            server.now = server.now + .minutes(Int64(random.below(2_000) + 1))
            let first = server.refresh(held, attempt: random.bytes(32)).next
            server.now = server.now + .microseconds(Int64(random.below(10_000_001)))
            let second = server.refresh(held, attempt: random.below(2) == 0 ? [] : random.bytes(32)).next
            #expect(first != nil && first == second)
            held = first ?? 0
        }
    }
}
