import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Reactor

@Suite struct StalledWorkTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func makeQueue(_ works: [Work], memoryMax: Int = .max) throws -> WorkQueue {
        let limits = WorkQueue.Limits(workers: 3, queueMax: 8, queueMaxPerTenant: 8, memoryMax: memoryMax)
        var queue = WorkQueue(name: "test", limits: limits)
        var expired: [Work] = []
        for work in works { try queue.submit(work, now: start, expired: &expired) }
        return queue
    }

    private func makeWork(
        milliseconds: Int64 = 10, memory: Int = 0, deadline: Instant = .distantFuture
    ) -> Work {
        let cost = WorkCost(time: .milliseconds(milliseconds), memoryByteCount: memory)
        return Work(
            tenant: "a", deadline: deadline, cost: cost, execute: { {} },
            fail: { _ in })
    }

    private func time(_ milliseconds: Int64) -> Instant { start.advanced(by: .milliseconds(milliseconds)) }

    @Test func eachLaneTakesItsWorksOnly() throws {
        let (short, long) = (makeWork(milliseconds: 100), makeWork(milliseconds: 101))
        for (lane, expected) in [(WorkLane.all, long), (.first, short), (.short, short), (.long, long)] {
            var queue = try makeQueue([long, short])
            #expect(queue.take(now: start, lane: lane).next === expected)
        }
    }

    /// A work that is expected to take ten milliseconds stalls after four times as long plus 40 ms.
    @Test func theFirstWorkerRepeatsWhatDoesNotGetOn() throws {
        let work = makeWork()
        var queue = try makeQueue([work])
        #expect(queue.nextStall == nil)
        #expect(queue.take(now: start, lane: .short).next === work)
        #expect(queue.nextStall == time(80))
        #expect(queue.take(now: time(79), lane: .first).next == nil)
        #expect(queue.take(now: time(80), lane: .short).next == nil)
        #expect(queue.take(now: time(80), lane: .first).next === work)
        #expect(queue.counts.running == 2 && queue.counts.repeated == 1)
        // The work is not started a third time.
        #expect(queue.take(now: time(1_000), lane: .first).next == nil && queue.nextStall == nil)
        queue.finished(work, afterNanoseconds: 10_000_000)
        queue.finished(work, afterNanoseconds: 1_000_000_000)
        #expect(queue.counts.running == 0)
    }

    @Test func theFirstOfSeveralStalledGoesFirst() throws {
        let works = [makeWork(), makeWork()]
        var queue = try makeQueue(works)
        for (index, work) in works.enumerated() {
            #expect(queue.take(now: time(Int64(index)), lane: .short).next === work)
        }
        for work in works { #expect(queue.take(now: time(500), lane: .first).next === work) }
    }

    @Test func whatEndedOrIsTooLateIsNotRepeated() throws {
        let (ended, late) = (makeWork(), makeWork(deadline: time(60)))
        var queue = try makeQueue([ended, late])
        #expect(queue.take(now: start, lane: .short).next === ended)
        #expect(queue.take(now: start, lane: .short).next === late)
        queue.finished(ended, afterNanoseconds: 10_000_000)
        #expect(queue.take(now: time(500), lane: .first).next == nil && queue.counts.repeated == 0)
    }

    @Test func whatOtherWorkersTakeIsNotWatched() throws {
        for lane in [WorkLane.all, .first, .long] {
            var queue = try makeQueue([makeWork(milliseconds: lane == .long ? 500 : 10)])
            #expect(queue.take(now: start, lane: lane).next != nil)
            #expect(queue.nextStall == nil)
        }
    }

    @Test func aRepetitionWaitsForMemory() throws {
        let work = makeWork(memory: 60)
        var queue = try makeQueue([work], memoryMax: 100)
        #expect(queue.take(now: start, lane: .short).next === work)
        #expect(queue.take(now: time(80), lane: .first).next == nil)
        #expect(queue.nextStall == time(160))
        #expect(queue.counts.memoryPeakByteCount == 60)
    }

    /// Each work of another lane begins before it, a bounded number of times.
    @Test func aLongWorkGetsMemoryThatShortOnesWant() throws {
        let long = makeWork(milliseconds: 200, memory: 80)
        var queue = try makeQueue([], memoryMax: 100)
        var expired: [Work] = []
        var running = makeWork(memory: 30)
        try queue.submit(running, now: start, expired: &expired)
        #expect(queue.take(now: start, lane: .short).next === running)
        try queue.submit(long, now: start, expired: &expired)
        var passes = 0
        while passes < 100 {
            let next = makeWork(memory: 30)
            try queue.submit(next, now: start, expired: &expired)
            guard queue.take(now: start, lane: .short).next === next else { break }
            queue.finished(running, afterNanoseconds: 10_000_000)
            running = next
            passes += 1
        }
        #expect(passes == WorkAdmission.passesMax)
        queue.finished(running, afterNanoseconds: 10_000_000)
        #expect(queue.take(now: start, lane: .long).next === long)
    }

    /// The spare thread stands still in the middle of its work, as one without a processor does, until the end.
    @Test func aCallerGetsItsAnswerThoughItsThreadStandsStill() async throws {
        let pool = WorkerPool(
            name: "stall", workers: 2, queueMax: 8, queueMaxPerTenant: 8, priority: .spare(exceptFirst: 4, andLong: 10))
        let (opened, begun) = (Semaphore(), Counter())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for tenant in ["a", "b"] as [Text] {
                group.addTask {
                    try await pool.run(tenant: tenant, deadline: .distantFuture) {
                        begun.add()
                        // Both workers have a work.
                        while begun.value < 2 { sched_yield() }
                        if sched_getscheduler(0) != SCHED_OTHER { opened.wait() }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(pool.counts.repeated == 1)
        opened.signal()
        end(pool)
        #expect(pool.counts.running == 0 && pool.counts.done == 3)
    }

    /// This holds for works of the same tenant, too.
    @Test func longWorksLeaveTheFirstWorkersToShortOnes() async throws {
        let pool = WorkerPool(
            name: "long", workers: 2, queueMax: 8, queueMaxPerTenant: 8, priority: .spare(exceptFirst: 4, andLong: 10))
        let opened = Semaphore()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    let cost = WorkCost(time: .seconds(1))
                    try await pool.run(tenant: .empty, deadline: .distantFuture, cost: cost) { opened.wait() }
                }
            }
            try await until("one work runs, two wait") { pool.counts.running >= 1 && pool.counts.queued >= 2 }
            for _ in 0..<10 { #expect(try await pool.run(tenant: .empty, deadline: .distantFuture) { 7 } == 7) }
            #expect(pool.counts.running == 1)
            for _ in 0..<3 { opened.signal() }
            try await group.waitForAll()
        }
        end(pool)
    }
}

private func end(_ pool: WorkerPool) { pool.close() }
