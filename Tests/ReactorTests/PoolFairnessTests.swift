import Base
import TestSupport
import Testing

@testable import Reactor

/// The fairness between the tenants of a pool, over random loads. Times are in nanoseconds of a simulated clock.
@Suite struct PoolFairnessTests {
    private static let runs = 60
    private static let millisecond: Int64 = 1_000_000

    private func tenants(_ count: Int) -> [Text] { (0..<count).map { Text("tenant\($0)") } }

    /// The time of a work in `range`, and what the pool is told of it: nothing, or at most the truth.
    private func load(
        _ random: inout SeededRandom, _ range: ClosedRange<Int64>
    ) -> (nanoseconds: Int64, cost: WorkCost) {
        let nanoseconds = range.lowerBound + Int64(random.below(Int(range.upperBound - range.lowerBound) + 1))
        let told = random.below(2) == 0 ? 0 : nanoseconds / Int64(1 + random.below(3))
        return (nanoseconds, WorkCost(time: .nanoseconds(told)))
    }

    /// However expensive and many the works of other tenants are, at most one work of each begins before a new
    /// tenant's first work.
    @Test func whoComesWaitsForAtMostOneWorkOfEachOther() {
        var random = SeededRandom.printed()
        for _ in 0..<Self.runs {
            var pool = PoolSimulation(workers: 1 + random.below(4))
            let others = tenants(1 + random.below(6))
            for tenant in others {
                for _ in 0..<(20 + random.below(20)) {
                    let (nanoseconds, cost) = load(&random, Self.millisecond...3_000 * Self.millisecond)
                    pool.submit(tenant, taking: nanoseconds, cost: cost)
                }
            }
            for _ in 0..<random.below(30) { pool.step() }
            let begunBefore = pool.begun.count
            let work = pool.submit("late", taking: Self.millisecond)
            pool.run()
            let index = pool.begun.firstIndex { $0.work === work } ?? -1
            #expect(index >= begunBefore)
            var counts: [Text: Int] = [:]
            for other in pool.begun[begunBefore..<max(begunBefore, index)] {
                counts[other.work.tenant, default: 0] += 1
            }
            #expect(counts.values.allSatisfy { $0 == 1 }, "\(counts)")
        }
    }

    /// Two tenants that always have work get the same time, though one has few expensive works, the other many cheap
    /// ones.
    @Test func whoAlwaysHasWorkGetsTheSameTime() {
        var random = SeededRandom.printed()
        for _ in 0..<Self.runs / 10 {
            let workers = 1 + random.below(4)
            var pool = PoolSimulation(workers: workers)
            let dearest = 1_000 * Self.millisecond
            for _ in 0..<100 {
                let (nanoseconds, cost) = load(&random, dearest / 2...dearest)
                pool.submit("dear", taking: nanoseconds, cost: cost)
            }
            for _ in 0..<7_000 {
                let (nanoseconds, cost) = load(&random, Self.millisecond...10 * Self.millisecond)
                pool.submit("cheap", taking: nanoseconds, cost: cost)
            }
            pool.run(until: Instant(nanoseconds: 60 * dearest / Int64(workers)))
            let (dear, cheap) = (pool.served["dear"] ?? 0, pool.served["cheap"] ?? 0)
            #expect(abs(dear - cheap) <= Int64(2 * workers) * dearest, "\(dear) \(cheap) by \(workers)")
        }
    }

    /// A tenant has at most half of the workers, but at least one, while another tenant could use a worker.
    @Test func aTenantHasHalfOfTheWorkersWhileAnotherWaits() {
        for workers in 1...8 {
            var pool = PoolSimulation(workers: workers)
            for _ in 0..<100 { pool.submit("many", taking: 1_000 * Self.millisecond) }
            // A tenant that is alone has all workers.
            #expect(pool.runningCount(of: "many") == workers)
            for _ in 0..<100 { pool.submit("other", taking: Self.millisecond) }
            for _ in 0..<workers { pool.step() }
            #expect(pool.runningCount(of: "many") <= max(1, workers / 2))
            #expect(pool.runningCount == workers)
        }
    }

    /// Works that are known to be long leave a worker to the short works, which do not wait at all.
    @Test func shortWorksNeedNotWaitForLongOnes() {
        for workers in 2...8 {
            var pool = PoolSimulation(workers: workers)
            let long = WorkCost(time: WorkAdmission.longWork + .milliseconds(1))
            for number in 0..<40 { pool.submit(Text("t\(number % 3)"), taking: 2_000 * Self.millisecond, cost: long) }
            #expect(pool.runningCount == workers - 1)
            pool.submit("late", taking: Self.millisecond, cost: WorkCost(time: .milliseconds(10)))
            #expect(pool.begun.last?.work.tenant == "late")
            #expect(pool.begun.last?.waitedFor == 0)
        }
    }

    @Test func aDearWorkIsPaidForWhenTheTenantComesBackSoon() {
        var pool = PoolSimulation(workers: 1)
        pool.submit("busy", taking: 10 * Self.millisecond)
        pool.submit("dear", taking: 500 * Self.millisecond)
        for _ in 0..<100 { pool.submit("busy", taking: 10 * Self.millisecond) }
        while pool.served["dear"] == nil { pool.step() }
        // The tenant has nothing waiting now; its next work begins when the other tenant has had as much time.
        let before = pool.begun.count
        let work = pool.submit("dear", taking: 500 * Self.millisecond)
        pool.run()
        let index = pool.begun.firstIndex { $0.work === work } ?? 0
        #expect((45...50).contains(index - before))
    }

    /// Random loads with memory, deadlines and cancellations: the bounds on what runs together are kept, no work is
    /// forgotten, and no worker sleeps while there is work that it may do.
    @Test func memoryIsBoundedAndEverythingComesToAnEnd() {
        var random = SeededRandom.printed()
        for _ in 0..<Self.runs {
            let workers = 1 + random.below(6)
            var pool = PoolSimulation(workers: workers, memoryMax: 100)
            var submitted = 0
            var cancelled = 0
            var works: [Work] = []
            for _ in 0..<300 {
                switch random.below(10) {
                case 0...5:
                    // One work in ten needs more than the bound, and runs without another that holds memory.
                    let memory = random.below(10) == 0 ? 101 + random.below(100) : random.below(60)
                    let time = Int64(1 + random.below(600)) * Self.millisecond
                    let deadline =
                        random.below(4) == 0
                        ? pool.now.advanced(byNanoseconds: Int64(1 + random.below(3_000)) * Self.millisecond)
                        : .distantFuture
                    works.append(
                        pool.submit(
                            Text("t\(random.below(8))"), taking: time,
                            cost: WorkCost(time: .nanoseconds(time), memoryByteCount: memory), deadline: deadline))
                    submitted += 1
                case 6 where !works.isEmpty:
                    let before = pool.queue.counts.cancelled
                    pool.cancel(works[random.below(works.count)])
                    cancelled += Int(pool.queue.counts.cancelled - before)
                default: pool.step()
                }
            }
            pool.run()
            #expect(pool.isMemoryKept)
            #expect(pool.longestRun <= max(1, workers - 1))
            #expect(pool.queue.counts.queued == 0 && pool.isIdle)
            #expect(pool.begun.count + pool.expiredCount + cancelled == submitted)
            #expect(pool.queue.counts.memoryByteCount == 0)
        }
    }

    /// A work that needs nearly all of the memory gets it, though small works never stop coming.
    @Test func aLargeWorkIsNotPutOffForEver() {
        var pool = PoolSimulation(workers: 8, memoryMax: 100)
        func submitSmall() {
            for number in 0..<8 {
                pool.submit(
                    Text("small\(number)"), taking: 10 * Self.millisecond,
                    cost: WorkCost(time: .milliseconds(10), memoryByteCount: 12))
            }
        }
        submitSmall()
        let large = pool.submit(
            "large", taking: 100 * Self.millisecond, cost: WorkCost(time: .milliseconds(100), memoryByteCount: 90))
        var steps = 0
        while !pool.begun.contains(where: { $0.work === large }) && steps < 1_000 {
            if pool.queue.counts.queued < 8 { submitSmall() }
            pool.step()
            steps += 1
        }
        #expect(steps <= WorkAdmission.passesMax + 2 * 8)
    }
}
