import Base
import Testing

@testable import Reactor

@Suite struct WorkQueueTests {
    private let start = Instant(nanoseconds: 1_000_000_000)

    private func makeQueue(workers: Int = 1, queueMax: Int = 4, queueMaxPerTenant: Int = 4) -> WorkQueue {
        let limits = WorkQueue.Limits(workers: workers, queueMax: queueMax, queueMaxPerTenant: queueMaxPerTenant)
        return WorkQueue(name: "test", limits: limits)
    }

    private func makeWork(
        _ tenant: Text = "a", source: Text = .empty, deadline: Instant = .distantFuture, isShort: Bool = false
    ) -> Work {
        Work(tenant: tenant, source: source, deadline: deadline, isShort: isShort, execute: { {} }, fail: { _ in })
    }

    /// Submits the work, and returns the failure if it was refused.
    private func refusal(_ queue: inout WorkQueue, _ work: Work, at now: Instant) -> Failure? {
        var expired: [Work] = []
        do {
            try queue.submit(work, now: now, expired: &expired)
            return nil
        } catch {
            return error
        }
    }

    @Test func theQueueTakesItsMaximumAndNotOneMore() {
        var queue = makeQueue(queueMax: 2)
        #expect(refusal(&queue, makeWork("a"), at: start) == nil)
        #expect(refusal(&queue, makeWork("b"), at: start) == nil)
        let failure = refusal(&queue, makeWork("c"), at: start)
        #expect(failure?.code == .resourceExhausted)
        #expect(failure?.reason == "SERVER_OVERLOADED")
        #expect(queue.counts == WorkerPoolCounts(queued: 2, refused: 1))
    }

    @Test func aTenantTakesItsMaximumAndNotOneMore() {
        var queue = makeQueue(queueMax: 4, queueMaxPerTenant: 2)
        #expect(refusal(&queue, makeWork("a"), at: start) == nil)
        #expect(refusal(&queue, makeWork("a"), at: start) == nil)
        #expect(refusal(&queue, makeWork("a"), at: start)?.reason == "SERVER_OVERLOADED")
        #expect(refusal(&queue, makeWork("b"), at: start) == nil)
    }

    /// Submits the work to a queue that has no place left, and returns the works that the queue gave up for it.
    private func displaced(_ queue: inout WorkQueue, by work: Work) -> Work? {
        var expired: [Work] = []
        let displaced = try? queue.submit(work, now: start, expired: &expired)
        #expect(expired.isEmpty)
        if let displaced {
            #expect(displaced.failure.reason == "SERVER_OVERLOADED" && displaced.failure.retryAfter != nil)
        }
        return displaced?.work
    }

    /// Two tenants that fill the queue keep no third one out, as long as they have more works in it.
    @Test func theTenantWithMostGivesAPlaceToOneWithFewer() {
        var queue = makeQueue(queueMax: 6, queueMaxPerTenant: 4)
        let many = (0..<4).map { _ in makeWork("many") }
        for work in many + [makeWork("some"), makeWork("some")] { #expect(refusal(&queue, work, at: start) == nil) }
        #expect(displaced(&queue, by: makeWork("late")) === many[3])
        #expect(displaced(&queue, by: makeWork("late")) === many[2])
        // Now each has two, and none has two more than another.
        for tenant in ["late", "many", "some"] as [Text] {
            #expect(refusal(&queue, makeWork(tenant), at: start)?.reason == "SERVER_OVERLOADED")
        }
        #expect(queue.counts == WorkerPoolCounts(queued: 6, refused: 5))
        #expect(displaced(&queue, by: makeWork("later")) != nil)
    }

    @Test func theSourceWithMostGivesAPlaceToOneWithFewer() {
        var queue = makeQueue(queueMax: 100, queueMaxPerTenant: 4)
        let flood = (0..<4).map { _ in makeWork(source: "flood") }
        for work in flood { #expect(refusal(&queue, work, at: start) == nil) }
        #expect(refusal(&queue, makeWork(source: "flood"), at: start)?.reason == "SERVER_OVERLOADED")
        #expect(displaced(&queue, by: makeWork(source: "calm")) === flood[3])
        #expect(displaced(&queue, by: makeWork(source: "calm")) === flood[2])
        #expect(refusal(&queue, makeWork(source: "calm"), at: start)?.reason == "SERVER_OVERLOADED")
        // Another tenant has places of its own.
        #expect(refusal(&queue, makeWork("b", source: "flood"), at: start) == nil)
        #expect(queue.counts == WorkerPoolCounts(queued: 5, refused: 4))
    }

    @Test func retryAfterFollowsTheQueueAndTheMovingAverage() throws {
        var queue = makeQueue(workers: 2, queueMax: 3)
        for _ in 0..<3 { #expect(refusal(&queue, makeWork(), at: start) == nil) }
        // No time is known yet, and the wait for short work is never less than a second.
        #expect(refusal(&queue, makeWork(), at: start)?.retryAfter == .milliseconds(1_000))
        queue.finished(try #require(queue.take(now: start).next), afterNanoseconds: 1_600_000_000)
        queue.finished(try #require(queue.take(now: start).next), afterNanoseconds: 800_000_000)
        for _ in 0..<2 { #expect(refusal(&queue, makeWork(), at: start) == nil) }
        // 1600 + (800 - 1600) / 8 = 1500 ms each, three ahead, two workers.
        #expect(refusal(&queue, makeWork(), at: start)?.retryAfter == .milliseconds(2_251))
    }

    /// Making a key takes as long as hundreds of signatures, and says nothing about them.
    @Test func theBacklogIsThatOfShortWorks() throws {
        var queue = makeQueue(workers: 2, queueMax: 16)
        func finish(isShort: Bool, nanoseconds: Int64) throws {
            #expect(refusal(&queue, makeWork(isShort: isShort), at: start) == nil)
            queue.finished(try #require(queue.take(now: start).next), afterNanoseconds: nanoseconds)
        }
        try finish(isShort: false, nanoseconds: 100_000_000)
        for _ in 0..<3 { #expect(refusal(&queue, makeWork(isShort: true), at: start) == nil) }
        #expect(queue.backlog == .zero)
        while let work = queue.take(now: start).next { queue.finished(work, afterNanoseconds: 200_000) }
        try finish(isShort: false, nanoseconds: 100_000_000)
        for _ in 0..<3 { #expect(refusal(&queue, makeWork(isShort: true), at: start) == nil) }
        #expect(queue.backlog == .microseconds(300))
        _ = queue.close()
        #expect(queue.backlog == .zero)
    }

    @Test func workPastItsDeadlineIsSkippedWhenItsTurnComes() {
        var queue = makeQueue()
        let late = makeWork(deadline: start.advanced(byNanoseconds: 10))
        let good = makeWork(deadline: start.advanced(byNanoseconds: 11))
        #expect(refusal(&queue, late, at: start) == nil)
        #expect(refusal(&queue, good, at: start) == nil)
        let batch = queue.take(now: start.advanced(byNanoseconds: 10))
        #expect(batch.next === good)
        #expect(batch.expired.map { $0 === late } == [true])
        #expect(queue.counts == WorkerPoolCounts(running: 1, expired: 1))
    }

    @Test func workThatComesTooLateIsNotQueued() {
        var queue = makeQueue()
        #expect(refusal(&queue, makeWork(deadline: start), at: start)?.code == .deadlineExceeded)
        #expect(queue.counts == WorkerPoolCounts(expired: 1))
    }

    @Test func expiredWorkMakesRoomInAFullQueue() throws {
        var queue = makeQueue(queueMax: 2)
        let soon = makeWork(deadline: start.advanced(byNanoseconds: 10))
        #expect(refusal(&queue, soon, at: start) == nil)
        #expect(refusal(&queue, makeWork(), at: start) == nil)
        #expect(refusal(&queue, makeWork(), at: start)?.code == .resourceExhausted)
        var expired: [Work] = []
        try queue.submit(makeWork(), now: start.advanced(byNanoseconds: 10), expired: &expired)
        #expect(expired.map { $0 === soon } == [true])
        #expect(queue.counts == WorkerPoolCounts(queued: 2, refused: 1, expired: 1))
    }

    @Test func cancelledWorkLeavesTheQueueOnce() {
        var queue = makeQueue()
        let work = makeWork()
        #expect(refusal(&queue, work, at: start) == nil)
        queue.cancel(work)
        queue.cancel(work)
        #expect(queue.counts == WorkerPoolCounts(cancelled: 1))
        #expect(queue.take(now: start).next == nil)
    }

    /// How a work leaves the queue without having run.
    enum Leaving: CaseIterable { case cancelled, expiredInTurn, expiredInAFullQueue }

    /// A work that lacks memory keeps others that need some from beginning, once they have passed it often enough. When
    /// it leaves, they go on at once.
    @Test(arguments: Leaving.allCases) func whoWaitedForMemoryAndLeftHoldsNobodyUp(how: Leaving) throws {
        var queue = WorkQueue(
            name: "test", limits: .init(workers: 8, queueMax: 40, queueMaxPerTenant: 40, memoryMax: 100))
        func work(_ memory: Int, _ deadline: Instant = .distantFuture) -> Work {
            Work(
                tenant: memory > 50 ? "large" : "small", deadline: deadline,
                cost: WorkCost(time: .milliseconds(1), memoryByteCount: memory), execute: { {} }, fail: { _ in })
        }
        let late = start.advanced(byNanoseconds: 10)
        #expect(refusal(&queue, work(30), at: start) == nil)
        let running = try #require(queue.take(now: start).next)
        let large = work(90, how == .cancelled ? .distantFuture : late)
        #expect(refusal(&queue, large, at: start) == nil)
        for _ in 0..<39 { #expect(refusal(&queue, work(10), at: start) == nil) }
        // Small works begin until they have passed over the large work's turn too often.
        var passed = 0
        while let small = queue.take(now: start).next {
            queue.finished(small, afterNanoseconds: 1_000_000)
            passed += 1
        }
        #expect(passed >= WorkAdmission.passesMax && passed < 39)
        switch how {
        case .cancelled: queue.cancel(large)
        case .expiredInTurn: break
        case .expiredInAFullQueue:
            while refusal(&queue, work(10), at: start) == nil {}
            #expect(refusal(&queue, work(10), at: late) == nil)
        }
        let next = how == .cancelled ? start : late
        #expect(queue.take(now: next).next?.cost.memoryByteCount == 10)
        #expect(queue.take(now: next).next?.cost.memoryByteCount == 10)
        queue.finished(running, afterNanoseconds: 1_000_000)
    }

    @Test func aClosedQueueReturnsWhatWaitsAndTakesNothing() {
        var queue = makeQueue()
        #expect(refusal(&queue, makeWork("a"), at: start) == nil)
        #expect(refusal(&queue, makeWork("b"), at: start) == nil)
        #expect(queue.close().count == 2)
        #expect(refusal(&queue, makeWork(), at: start)?.code == .unavailable)
        #expect(queue.counts.queued == 0)
    }
}
