import Base
import Rules
import Testing

@Suite struct DeniedCallRateTests {
    private let begin = Timestamp(seconds: 1_000_000)
    private let shop = DeniedCallRate.Caller(id: "shop", tenantID: "acme")

    private func limits() -> Limits {
        var limits = Limits()
        (limits.deniedCallsAtOnce, limits.deniedCallsEvery) = (3, .minutes(10))
        (limits.deniedCallsAtOnceInAll, limits.deniedCallsPerMinuteInAll) = (5, 60)
        limits.deniedCallersMax = 4
        return limits
    }

    @Test func `A caller has some events at once, then one in ten minutes, which says how many were counted`() {
        var rate = DeniedCallRate(limits: limits(), now: begin)
        let first = (0..<1_000).map { _ in rate.admit(shop, now: begin) }
        #expect(first.prefix(3) == [0, 0, 0] && first.dropFirst(3).allSatisfy { $0 == nil })
        #expect(rate.admit(shop, now: begin + .seconds(599)) == nil)
        #expect(rate.admit(shop, now: begin + .minutes(10)) == 998)
        #expect(rate.admit(shop, now: begin + .minutes(10)) == nil)
        // When the clock is set back, nothing is admitted.
        #expect(rate.admit(shop, now: begin) == nil)
    }

    @Test func `What was counted is told of when it is time, also where nothing more comes`() {
        var rate = DeniedCallRate(limits: limits(), now: begin)
        for _ in 0..<10 { _ = rate.admit(shop, now: begin) }
        #expect(rate.takeDue(now: begin + .minutes(9)).isEmpty)
        let due = rate.takeDue(now: begin + .minutes(10))
        #expect(due.map(\.count) == [7] && due.map(\.caller) == [shop])
        #expect(rate.takeDue(now: begin + .hours(1)).isEmpty)
    }

    @Test func `All callers together have a bound, and so has their number`() {
        var rate = DeniedCallRate(limits: limits(), now: begin)
        let callers = (0..<6).map { DeniedCallRate.Caller(id: Text("key\($0)"), tenantID: nil) }
        let admitted = callers.flatMap { caller in (0..<2).map { _ in rate.admit(caller, now: begin) } }
        #expect(admitted.count { $0 != nil } == 5)
        // Four callers fill the table; two more come, with two calls each.
        #expect(rate.forgotten == 4)
        // When the first callers are silent, others get their places.
        let later = begin + .hours(2)
        #expect(rate.takeDue(now: later).map(\.count).reduce(0, +) == 3)
        #expect(rate.admit(callers[5], now: later + .hours(2)) == 0)
    }

    @Test func `A full table is looked through at most once a second`() {
        var rate = DeniedCallRate(limits: limits(), now: begin)
        for number in 0..<4 {
            _ = rate.admit(DeniedCallRate.Caller(id: Text("key\(number)"), tenantID: "acme"), now: begin)
        }
        // No caller is idle yet; half a second later all of them are.
        let almost = begin + .minutes(10) - .milliseconds(500)
        #expect(rate.admit(shop, now: almost) == nil)
        #expect(rate.admit(shop, now: almost + .milliseconds(900)) == nil)
        #expect(rate.forgotten == 2)
        #expect(rate.admit(shop, now: almost + .milliseconds(1_100)) == 0)
    }

    @Test func `A tenant that fills the table leaves room for the callers of others`() {
        var rate = DeniedCallRate(limits: limits(), now: begin)
        for number in 0..<100 {
            _ = rate.admit(DeniedCallRate.Caller(id: Text("key\(number)"), tenantID: "noisy"), now: begin)
        }
        // The events of all callers together are spent a while later again.
        let later = begin + .minutes(1)
        #expect(rate.admit(shop, now: later) == 0)
        #expect(rate.admit(DeniedCallRate.Caller(id: "other", tenantID: "beta"), now: later) == 0)
        // Nobody takes the last places of those who have fewer.
        #expect(rate.admit(DeniedCallRate.Caller(id: "new", tenantID: "noisy"), now: later) == nil)
        for _ in 0..<3 { _ = rate.admit(shop, now: later) }
        #expect(rate.takeDue(now: begin + .hours(1)).contains { $0.caller == shop })
    }

    @Test func `A tenant that spends its events leaves some for others`() {
        var limits = limits()
        limits.deniedCallersMax = 100
        var rate = DeniedCallRate(limits: limits, now: begin)
        let admitted = (0..<20).map { number in
            rate.admit(DeniedCallRate.Caller(id: Text("key\(number)"), tenantID: "noisy"), now: begin)
        }
        #expect(admitted.count { $0 != nil } < 5)
        #expect(rate.admit(shop, now: begin) == 0)
    }
}
