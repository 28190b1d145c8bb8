import Base
import Testing

@testable import Federation

@Suite struct ProcessorBudgetTests {
    private let start = Timestamp(seconds: 1_800_000_000)

    private func isRefused(_ budget: ProcessorBudget, _ tenant: Text, at now: Timestamp) -> Bool {
        do {
            try budget.require(tenant, now: now)
            return false
        } catch {
            return true
        }
    }

    /// Works until the thread has had a millisecond of the processor.
    private func spend(_ budget: ProcessorBudget, _ tenant: Text, at now: Timestamp) {
        budget.spend(tenant, now: now) {
            let end = OSThread.processorNanoseconds + 1_000_000
            while OSThread.processorNanoseconds < end {}
        }
    }

    @Test func aTenantSpendsItsOwnTimeInEachWindow() {
        let budget = ProcessorBudget(limit: .milliseconds(1))
        #expect(!isRefused(budget, "a", at: start))
        spend(budget, "a", at: start)
        #expect(isRefused(budget, "a", at: start))
        #expect(isRefused(budget, "a", at: start + .microseconds(9_999_999)))
        #expect(!isRefused(budget, "b", at: start))
        #expect(!isRefused(budget, "a", at: start + .seconds(10)))
        spend(budget, "a", at: start + .seconds(10))
        #expect(isRefused(budget, "a", at: start + .seconds(19)))
        #expect(budget.refused.value == 3)
    }

    @Test func aClockThatWentBackMakesNobodyWait() {
        let budget = ProcessorBudget(limit: .milliseconds(1))
        spend(budget, "a", at: start)
        #expect(!isRefused(budget, "a", at: start - .seconds(1)))
    }

    @Test func `An answer that comes late does not make the account forget what was spent since its request`() {
        let budget = ProcessorBudget(limit: .milliseconds(1))
        spend(budget, "a", at: start + .seconds(5))
        budget.spend("a", now: start) {}
        #expect(isRefused(budget, "a", at: start + .seconds(5)))
        // An account of a time that is not yet there is left from before the clock went back.
        spend(budget, "a", at: start - .seconds(20))
        #expect(isRefused(budget, "a", at: start - .seconds(20)))
    }

    @Test func aFloodOfTenantsIsBoundedAndForgetsThoseWhoseWindowIsOver() {
        let budget = ProcessorBudget(limit: .milliseconds(1))
        for number in 0..<16_384 { budget.spend(Text("old\(number)"), now: start - .seconds(20)) {} }
        spend(budget, "a", at: start)
        for number in 0..<10_000 { budget.spend(Text("new\(number)"), now: start) {} }
        #expect(budget.tenantCount == 16_384)
        #expect(isRefused(budget, "a", at: start))
    }
}
