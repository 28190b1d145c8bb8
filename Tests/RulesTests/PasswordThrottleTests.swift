import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct PasswordThrottleTests {
    typealias Subject = PasswordThrottle.Subject

    let start = Timestamp(seconds: 1_800_000_000)
    let owner = Subject(account: 1, source: 10, isKnown: true)

    /// Makes attempts that all fail, each as soon as it may, and returns how long each had to wait.
    func fail(
        _ throttle: inout PasswordThrottle, _ subject: Subject, times: Int, at now: inout Timestamp
    ) -> [Duration] {
        var waits: [Duration] = []
        for _ in 0..<times {
            var waited = Duration.zero
            while case .refused(let wait) = throttle.admit(subject, now: now) {
                waited += wait
                now = now + wait
            }
            waits.append(waited)
        }
        return waits
    }

    // MARK: One account and address

    @Test func fiveWrongPasswordsAreFreeThenTheWaitDoublesUpToAQuarterOfAnHour() {
        var throttle = PasswordThrottle()
        var now = start
        let waits = fail(&throttle, owner, times: 20, at: &now)
        #expect(waits.prefix(6).allSatisfy { $0 == .zero })
        #expect(waits[6...].prefix(10).map(\.components.seconds) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
        #expect(waits[16...].allSatisfy { $0 == .seconds(900) })
    }

    @Test func theWaitIsRetoldAsItShortens() {
        var throttle = PasswordThrottle()
        var now = start
        _ = fail(&throttle, owner, times: 8, at: &now)
        #expect(throttle.admit(owner, now: now) == .refused(retryAfter: .seconds(4)))
        #expect(throttle.admit(owner, now: now + .seconds(1)) == .refused(retryAfter: .seconds(3)))
        #expect(
            throttle.admit(owner, now: now + .seconds(4) - .microseconds(1)) == .refused(retryAfter: .microseconds(1)))
        #expect(throttle.admit(owner, now: now + .seconds(4)) == .admitted)
    }

    @Test func aRefusedAttemptCostsNothing() {
        var throttle = PasswordThrottle()
        var now = start
        _ = fail(&throttle, owner, times: 7, at: &now)
        for _ in 0..<1_000 { #expect(throttle.admit(owner, now: now) == .refused(retryAfter: .seconds(2))) }
        #expect(throttle.admit(owner, now: now + .seconds(2)) == .admitted)
    }

    @Test func successForgetsTheFailures() {
        var throttle = PasswordThrottle()
        var now = start
        _ = fail(&throttle, owner, times: 9, at: &now)
        now = now + .seconds(60)
        #expect(throttle.admit(owner, now: now) == .admitted)
        throttle.succeeded(owner)
        #expect(fail(&throttle, owner, times: 6, at: &now) == [Duration](repeating: .zero, count: 6))
    }

    @Test func anHourOfSilenceForgetsThemToo() {
        var throttle = PasswordThrottle()
        var now = start
        _ = fail(&throttle, owner, times: 10, at: &now)
        now = now + .seconds(3_600)
        #expect(fail(&throttle, owner, times: 2, at: &now)[1] > .zero)
        now = now + .seconds(3_601)
        #expect(fail(&throttle, owner, times: 6, at: &now) == [Duration](repeating: .zero, count: 6))
    }

    @Test func guessesSentAtOnceAreNotFree() {
        var throttle = PasswordThrottle()
        let admitted = (0..<100).count { _ in throttle.admit(owner, now: start) == .admitted }
        #expect(admitted == 6)
    }

    // MARK: Attempts that never ran

    @Test func anAttemptThatNeverRanIsGivenBackWithItsTime() {
        var throttle = PasswordThrottle()
        var now = start
        _ = fail(&throttle, owner, times: 16, at: &now)
        #expect(throttle.admit(owner, now: now) == .refused(retryAfter: .seconds(900)))
        now = now + .seconds(900)
        for _ in 0..<5 {
            // The queue was full: the same wait must not begin again.
            #expect(throttle.admit(owner, now: now) == .admitted)
            throttle.notTried(owner)
        }
        #expect(throttle.admit(owner, now: now) == .admitted)
        #expect(throttle.admit(owner, now: now) == .refused(retryAfter: .seconds(900)))
    }

    @Test func givingBackMoreThanWasTakenChangesNothing() {
        var throttle = PasswordThrottle()
        var now = start
        for _ in 0..<10 { throttle.notTried(owner) }
        let waits = fail(&throttle, owner, times: 7, at: &now)
        #expect(waits == [Duration](repeating: .zero, count: 6) + [.seconds(1)])
    }

    @Test func strangersAreRefundedToo() {
        var throttle = PasswordThrottle()
        for index in 0..<1_000 {
            let stranger = Subject(account: 1, source: 1_000 + UInt64(index))
            #expect(throttle.admit(stranger, now: start) == .admitted)
            if index.isMultiple(of: 2) {
                throttle.notTried(stranger)
            } else {
                throttle.succeeded(stranger)
            }
        }
    }

    // MARK: One account, many addresses

    @Test func aHundredStrangersAnHourAndNoMore() {
        var throttle = PasswordThrottle()
        for index in 0..<100 {
            #expect(throttle.admit(Subject(account: 1, source: 1_000 + UInt64(index)), now: start) == .admitted)
        }
        let next = Subject(account: 1, source: 5_000)
        #expect(throttle.admit(next, now: start + .minutes(20)) == .refused(retryAfter: .minutes(40)))
        #expect(throttle.admit(next, now: start + .hours(1) - .microseconds(1)) != .admitted)
        #expect(throttle.admit(next, now: start + .hours(1)) == .admitted)
        // Another account is not affected.
        #expect(throttle.admit(Subject(account: 2, source: 5_000), now: start + .minutes(20)) == .admitted)
    }

    @Test func anAttackFromElsewhereNeverMakesAKnownAddressWait() {
        var random = SeededRandom.printed()
        for _ in 0..<30 {
            var throttle = PasswordThrottle()
            var now = start
            for _ in 0..<400 {
                now = now + [.zero, .milliseconds(10), .seconds(30), .hours(1)][random.below(4)]
                switch random.below(20) {
                case 0:
                    // The owner mistypes now and then, and gets it right in the end.
                    for _ in 0..<random.below(5) { #expect(throttle.admit(owner, now: now) == .admitted) }
                    #expect(throttle.admit(owner, now: now) == .admitted)
                    throttle.succeeded(owner)
                case 1:
                    #expect(throttle.admit(owner, now: now) == .admitted)
                    throttle.notTried(owner)
                default:
                    // The attacker has every address but the owner's, and sometimes an unknown one, which is 0.
                    let address = random.below(10) == 0 ? 0 : 100 + UInt64(random.below(5_000))
                    let attacker = Subject(account: 1, source: address)
                    if throttle.admit(attacker, now: now) == .admitted, random.below(9) == 0 {
                        throttle.notTried(attacker)
                    }
                }
            }
        }
    }

    @Test func nothingKnownIsNeverAKnownSource() {
        var throttle = PasswordThrottle()
        let nameless = Subject(account: 1, source: 0, isKnown: true)
        #expect(!nameless.isKnown)
        for index in 0..<100 {
            #expect(throttle.admit(Subject(account: 1, source: 1_000 + UInt64(index)), now: start) == .admitted)
        }
        #expect(throttle.admit(nameless, now: start) != .admitted)
    }

    // MARK: Forgiven

    @Test func theOwnerWhoProvedByOtherMeansIsForgivenAtOnce() {
        var throttle = PasswordThrottle()
        var now = start
        let nameless = Subject(account: 1, source: 0)
        _ = fail(&throttle, nameless, times: 16, at: &now)
        for index in 0..<200 { _ = throttle.admit(Subject(account: 1, source: 1_000 + UInt64(index)), now: now) }
        _ = fail(&throttle, Subject(account: 2, source: 0), times: 16, at: &now)
        #expect(throttle.admit(nameless, now: now) != .admitted)
        throttle.forgive(account: 1)
        #expect(fail(&throttle, nameless, times: 6, at: &now) == [Duration](repeating: .zero, count: 6))
        // Later attempts count again, though no time has passed, and another account is not affected.
        #expect(throttle.admit(nameless, now: now) != .admitted)
        #expect(throttle.admit(Subject(account: 2, source: 0), now: now) != .admitted)
        throttle.forgive(account: 3)
    }

    // MARK: Counted elsewhere

    /// Attempts that another server or an earlier run counted are as good as those counted here.
    @Test func whatIsAddedCountsAsIfItHadBeenTriedHere() {
        var random = SeededRandom.printed()
        for _ in 0..<50 {
            var here = PasswordThrottle()
            var there = PasswordThrottle()
            var now = start
            for _ in 0..<60 {
                now = now + [.zero, .seconds(1), .minutes(20), .hours(1)][random.below(4)]
                let source = UInt64(random.below(3))
                let subject = Subject(account: UInt64(random.below(2)), source: source, isKnown: source == 2)
                let verdict = here.admit(subject, now: now)
                var copy = there
                #expect(copy.admit(subject, now: now) == verdict)
                if verdict == .admitted { there.add(1, by: subject, at: now) }
            }
        }
    }

    // MARK: Against the list of all attempts

    private struct Attempt {
        let time: Timestamp
        let subject: Subject
        var wasRight = false
    }

    /// The verdict of the rules on one more attempt, from nothing but the attempts before it.
    private func expected(_ subject: Subject, _ attempts: [Attempt], now: Timestamp) -> PasswordThrottle.Verdict {
        var failures: [Timestamp] = []
        var hourStartedAt: Timestamp?
        var strangers = 0
        for attempt in attempts where attempt.subject.account == subject.account {
            if hourStartedAt.map({ attempt.time - $0 >= .hours(1) }) ?? true {
                hourStartedAt = attempt.time
                strangers = 0
            }
            if !attempt.subject.isKnown && !attempt.wasRight { strangers += 1 }
            guard attempt.subject.source == subject.source else { continue }
            if let last = failures.last, attempt.time - last > .hours(1) { failures = [] }
            if attempt.wasRight { failures = [] } else { failures.append(attempt.time) }
        }
        if let last = failures.last, now - last <= .hours(1), failures.count > 5 {
            let seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900][min(failures.count - 6, 10)]
            let wait = last + .seconds(seconds) - now
            if wait > .zero { return .refused(retryAfter: wait) }
        }
        if !subject.isKnown, strangers >= 100, let hourStartedAt, now - hourStartedAt < .hours(1) {
            return .refused(retryAfter: hourStartedAt + .hours(1) - now)
        }
        return .admitted
    }

    @Test func everyVerdictFollowsFromTheAttemptsBefore() {
        var random = SeededRandom.printed()
        for round in 0..<40 {
            var throttle = PasswordThrottle()
            var attempts: [Attempt] = []
            var now = start
            for _ in 0..<300 {
                now =
                    now
                    + [.zero, .milliseconds(100), .seconds(2), .minutes(3), .minutes(70)][random.below(round % 5 + 1)]
                let source = UInt64(random.below(40))
                let subject = Subject(account: UInt64(random.below(2)), source: source, isKnown: source > 36)
                let verdict = throttle.admit(subject, now: now)
                #expect(verdict == expected(subject, attempts, now: now))
                guard verdict == .admitted else { continue }
                let isRight = random.below(12) == 0
                if isRight { throttle.succeeded(subject) }
                attempts.append(Attempt(time: now, subject: subject, wasRight: isRight))
            }
        }
    }
}
