import Base
import TestSupport
import Testing

@testable import Rules

/// No wait is for ever, no time traps, and no number of attempts takes more memory.
extension PasswordThrottleTests {
    /// Whatever happened, and whatever the clock did: after waiting as told, twice at the most, an attempt is admitted.
    @Test func noWaitIsLongerThanAnHourAndNoneIsForEver() {
        var random = SeededRandom.printed()
        for _ in 0..<100 {
            var throttle = PasswordThrottle()
            var now = start
            for _ in 0..<300 {
                let subject = Subject(account: UInt64(random.below(2)), source: UInt64(random.below(40)))
                let steps: [Duration] = [.zero, .zero, .seconds(1), .minutes(15), .hours(2), .days(-3)]
                now = now + steps[random.below(steps.count)]
                guard case .refused(let wait) = throttle.admit(subject, now: now) else {
                    if random.below(10) == 0 { throttle.succeeded(subject) }
                    continue
                }
                #expect(wait > .zero && wait <= .hours(1))
                var copy = throttle
                guard case .refused(let second) = copy.admit(subject, now: now + wait) else { continue }
                #expect(second <= .hours(1))
                #expect(copy.admit(subject, now: now + wait + second) == .admitted)
            }
        }
    }

    /// News from another server is a second old when it comes.
    @Test func whatWasCountedElsewhereEarlierForgetsNothing() {
        var throttle = PasswordThrottle()
        let subject = Subject(account: 1, source: 2)
        for _ in 0..<5 { #expect(throttle.admit(subject, now: start) == .admitted) }
        throttle.add(1, by: subject, at: start - .seconds(1))
        #expect(throttle.admit(subject, now: start) == .refused(retryAfter: .seconds(1)))
    }

    @Test func aClockThatWentBackMakesNobodyWait() {
        var throttle = PasswordThrottle()
        var now = start
        _ = fail(&throttle, owner, times: 12, at: &now)
        #expect(throttle.admit(owner, now: now) != .admitted)
        #expect(throttle.admit(owner, now: now - .days(1)) == .admitted)
        for index in 0..<100 { _ = throttle.admit(Subject(account: 2, source: 1_000 + UInt64(index)), now: now) }
        let stranger = Subject(account: 2, source: 9)
        #expect(throttle.admit(stranger, now: now) != .admitted)
        #expect(throttle.admit(stranger, now: now - .days(1)) == .admitted)
    }

    @Test func timesAtTheEndsOfTheNumbersDoNotTrap() {
        for first in [Int64.min, -1, 0, .max] {
            for second in [Int64.min, -1, 0, .max] {
                var throttle = PasswordThrottle()
                for time in [first, second, first] {
                    for _ in 0..<7 { _ = throttle.admit(owner, now: Timestamp(microseconds: time)) }
                    throttle.notTried(owner)
                    throttle.succeeded(owner)
                }
            }
        }
    }

    // MARK: Memory

    /// The number of entries of each kind.
    func counts(_ throttle: PasswordThrottle) -> [Int] {
        Mirror(reflecting: throttle).children.filter { $0.label == "buckets" || $0.label == "accounts" }
            .map { Mirror(reflecting: $0.value).children.count }
    }

    @Test func memoryIsBoundedWhateverIsTried() {
        for isSameMoment in [true, false] {
            var throttle = PasswordThrottle(bucketsMax: 64)
            for index in 0..<2_000 {
                let now = isSameMoment ? start : start + .microseconds(index)
                _ = throttle.admit(Subject(account: UInt64(index), source: UInt64(index)), now: now)
                let counts = counts(throttle)
                if counts.count != 2 || counts.contains(where: { $0 > 64 }) {
                    Issue.record("\(counts) entries")
                    return
                }
            }
        }
    }

    /// The attacker's entries are as strict as the owner's, and younger; there are a hundred times as many as fit.
    @Test func aTenantWithManyEntriesPushesOutItsOwn() {
        var throttle = PasswordThrottle(bucketsMax: 100)
        var now = start
        let stranger = Subject(account: 1, source: 10, tenant: 1)
        _ = fail(&throttle, stranger, times: 12, at: &now)
        for index in 0..<10_000 {
            now = now + .microseconds(1)
            let attacker = Subject(account: 100 + UInt64(index), source: 1, tenant: 2)
            throttle.add(12, by: attacker, at: now)
            guard case .refused = throttle.admit(stranger, now: now) else {
                Issue.record("the bucket was forgotten after \(index) of the attacker's")
                return
            }
        }
    }

    /// This holds within one tenant, too: an entry of one wrong password is cheap to make.
    @Test func entriesThatHoldNobodyBackGoBeforeThoseThatDo() {
        var throttle = PasswordThrottle(bucketsMax: 100)
        var now = start
        let stranger = Subject(account: 1, source: 10, tenant: 1)
        _ = fail(&throttle, stranger, times: 12, at: &now)
        for index in 0..<10_000 {
            now = now + .microseconds(1)
            throttle.add(5, by: Subject(account: 100 + UInt64(index), source: 1, tenant: 1), at: now)
            guard case .refused = throttle.admit(stranger, now: now) else {
                Issue.record("the bucket was forgotten after \(index) cheap ones")
                return
            }
        }
    }

    @Test func theQuietestGoFirst() {
        var throttle = PasswordThrottle(bucketsMax: 100)
        var now = start
        _ = fail(&throttle, owner, times: 6, at: &now)
        for index in 0..<1_000 {
            now = now + .microseconds(1)
            _ = throttle.admit(Subject(account: 100 + UInt64(index), source: 1), now: now)
            // The owner's bucket is younger than the others for as long as it is in use.
            if case .admitted = throttle.admit(owner, now: now) { Issue.record("the bucket was forgotten") }
            guard index.isMultiple(of: 20) else { continue }
            now = now + .seconds(900)
            #expect(throttle.admit(owner, now: now) == .admitted)
        }
    }
}
