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
            case .repeatedWithinGrace(let changed, let givesSuccessor):
                if let changed { session = changed }
                return (decision, givesSuccessor ? session.counter : nil)
            case .repeatedAfterLoss, .reusedAgain: return (decision, session.counter)
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
                case .repeatedAfterLoss:
                    // Every caller that is given a token here is given the same one, and nothing changes.
                    #expect(counter + 1 == highest && next == highest && server.session == before)
                case .repeatedWithinGrace(_, let givesSuccessor):
                    #expect(counter + 1 == highest && next == (givesSuccessor ? highest : nil))
                    var expected = before
                    (expected.graceCounter, expected.graceBegunAtCounter) =
                        (server.session.graceCounter, server.session.graceBegunAtCounter)
                    #expect(server.session == expected && server.session.graceCounter == highest)
                case .revokedByReuse: #expect(server.session.end == .reuse && next == nil)
                case .refused(let cause): #expect(cause == .revokedByReuse && before.end == .reuse)
                case .reused, .reusedAgain: Issue.record("this tenant rotates")
                }
            }
        }
    }

    /// Who comes second with each token has a copy, and is no second tab.
    @Test func theGraceGivesTheSuccessorOncePerRow() {
        var server = Server(settings: settings)
        /// Whether a second holder of the last token but one is given the newest.
        func isGiven() -> Bool? {
            let (decision, next) = server.refresh(server.session.counter - 1, attempt: [])
            guard case .repeatedWithinGrace(_, let givesSuccessor) = decision else { return nil }
            return givesSuccessor && next == server.session.counter
        }
        func rotate() { _ = server.refresh(server.session.counter, attempt: []) }
        rotate()
        // Several tabs; then each of them again with the next token, and with the one after it.
        #expect(isGiven() == true && isGiven() == true)
        rotate()
        #expect(isGiven() == false && isGiven() == false)
        rotate()
        #expect(isGiven() == false)
        // A refresh to which nobody came second ends the row.
        rotate()
        rotate()
        #expect(isGiven() == true)
    }

    /// An owner and a thief begin with the same token. Each refreshes with the newest that it was given, whenever it
    /// likes and however soon after the other.
    @Test func twoHoldersNeverFollowEachOtherForMoreThanOneToken() {
        var random = SeededRandom.printed()
        var (endings, follows) = (0, 0)
        for _ in 0..<2_000 {
            var server = Server(settings: settings)
            var held: [UInt64] = [1, 1]
            // The counters whose tokens both were given.
            var shared: Set<UInt64> = []
            for _ in 0..<60 {
                server.now = server.now + [.seconds(1), .seconds(9), .seconds(11), .hours(1)][random.below(4)]
                let holder = random.below(2)
                let (_, next) = server.refresh(held[holder], attempt: random.bytes(32))
                if let next { held[holder] = next }
                if held[0] == held[1], held[0] > 1 { shared.insert(held[0]) }
                if server.session.end != .unspecified { break }
            }
            if server.session.end == .reuse { endings += 1 }
            follows += shared.count
            #expect(shared.allSatisfy { !shared.contains($0 + 1) }, "\(shared.sorted())")
        }
        // Both happen.
        #expect(endings > 1_000 && follows > 100)
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

    /// The second tab is given the token once, and then reads it where the first tab has stored it.
    @Test func twoTabsThatRefreshAtOnceHoldTheSameToken() {
        var random = SeededRandom.printed()
        var server = Server(settings: settings)
        var held: UInt64 = 1
        for round in 0..<500 {
            server.now = server.now + .minutes(Int64(random.below(2_000) + 1))
            let first = server.refresh(held, attempt: random.bytes(32)).next
            server.now = server.now + .microseconds(Int64(random.below(10_000_001)))
            let (decision, second) = server.refresh(held, attempt: random.below(2) == 0 ? [] : random.bytes(32))
            guard case .repeatedWithinGrace(_, let givesSuccessor) = decision else {
                Issue.record("the second tab was refused: \(decision)")
                return
            }
            #expect(first != nil && second == (round == 0 ? first : nil) && givesSuccessor == (round == 0))
            held = first ?? 0
        }
    }
}
