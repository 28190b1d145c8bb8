import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Reactor

/// Keeps the pool's only worker busy until the gate is opened, and tells when the worker has entered.
private final class Gate: Sendable {
    private let entered = Promise<Void>()
    private let opened = Semaphore()

    func pass() {
        entered.succeed(())
        opened.wait()
    }

    func whenEntered() async throws { try await entered.value() }
    func open() { opened.signal() }
}

private final class Journal: Sendable {
    private let storage = Mutex<[String]>([])
    func note(_ entry: String) { storage.withLock { $0.append(entry) } }
    var entries: [String] { storage.withLock { $0 } }
}

private func close(_ pool: WorkerPool) { pool.close() }

private func failure(of task: Task<Void, any Error>) async -> Failure? {
    do {
        try await task.value
        return nil
    } catch {
        return error as? Failure
    }
}

@Suite struct WorkerPoolTests {
    /// A pool with one worker that waits at a gate.
    private func withBusyPool(
        queueMax: Int = 16, queueMaxPerTenant: Int = 16, _ body: (WorkerPool, Gate) async throws -> Void
    ) async throws {
        let pool = WorkerPool(name: "test", workers: 1, queueMax: queueMax, queueMaxPerTenant: queueMaxPerTenant)
        let gate = Gate()
        let blocker = Task { try await pool.run(tenant: .empty, deadline: .distantFuture) { gate.pass() } }
        try await gate.whenEntered()
        try await body(pool, gate)
        gate.open()
        try await blocker.value
        close(pool)
    }

    /// Queues a work that notes its name, and returns when the work waits, or when it came after its deadline.
    private func enqueue(
        _ name: String, tenant: Text = "a", on pool: WorkerPool, _ journal: Journal,
        deadline: Instant = .distantFuture, isShort: Bool = false, _ work: @escaping @Sendable () -> Void = {}
    ) async throws -> Task<Void, any Error> {
        let before = pool.counts
        let task = Task {
            try await pool.run(tenant: tenant, deadline: deadline, isShort: isShort) {
                journal.note(name)
                work()
            }
        }
        try await until("\(name) waits") {
            let counts = pool.counts
            return counts.queued == before.queued + 1 || counts.expired > before.expired
        }
        return task
    }

    @Test func workThatWasBegunIsTakenOutWhenItsCallerIsCancelled() async throws {
        try await withBusyPool { pool, _ in
            let caller = Task { try await pool.begin(tenant: "a", deadline: .distantFuture) { 1 }.value() }
            caller.cancel()
            await #expect(throws: CancellationError.self) { try await caller.value }
            #expect(pool.counts.queued == 0 && pool.counts.cancelled == 1)
        }
    }

    @Test func resultsAndErrorsComeBack() async throws {
        struct Broken: Error {}
        let pool = WorkerPool(name: "test", workers: 2, queueMax: 4, queueMaxPerTenant: 4)
        #expect(try await pool.run(tenant: .empty, deadline: .distantFuture) { 6 * 7 } == 42)
        await #expect(throws: Broken.self) {
            try await pool.run(tenant: .empty, deadline: .distantFuture) { throw Broken() }
        }
        close(pool)
        #expect(pool.counts.done == 2)
        #expect(pool.counts.running == 0)
    }

    @Test func theCallersLoopGoesOnWhileWorkRunsAndGetsTheAnswer() async throws {
        try await withLoop { loop in
            let pool = WorkerPool(name: "test", workers: 1, queueMax: 4, queueMaxPerTenant: 4)
            let answer = try await Resident(on: loop).hash(on: pool)
            #expect(answer == "hashed elsewhere, back on the loop")
            close(pool)
        }
    }

    @Test func tenantsTakeTurns() async throws {
        let journal = Journal()
        try await withBusyPool { pool, gate in
            var tasks: [Task<Void, any Error>] = []
            for name in ["a1", "a2", "a3", "b1", "b2"] {
                tasks.append(try await enqueue(name, tenant: Text(String(name.prefix(1))), on: pool, journal))
            }
            gate.open()
            for task in tasks { try await task.value }
            gate.open()
        }
        #expect(journal.entries == ["a1", "b1", "a2", "b2", "a3"])
    }

    @Test func aFullQueueRefusesWithATimeToComeBack() async throws {
        let journal = Journal()
        try await withBusyPool(queueMax: 1) { pool, gate in
            let waiting = try await enqueue("waiting", tenant: "a", on: pool, journal)
            let refused = await failure(of: Task { try await pool.run(tenant: .empty, deadline: .distantFuture) {} })
            #expect(refused?.code == .resourceExhausted)
            #expect(refused?.reason == "SERVER_OVERLOADED")
            #expect(try #require(refused?.retryAfter) >= .seconds(1))
            #expect(pool.counts.refused == 1)
            gate.open()
            try await waiting.value
        }
        #expect(journal.entries == ["waiting"])
    }

    @Test func workIsNeverRunOnceItsDeadlinePassed() async throws {
        let journal = Journal()
        try await withBusyPool { pool, gate in
            let deadline = Instant.now.advanced(by: .milliseconds(200))
            let late = try await enqueue("late", tenant: "a", on: pool, journal, deadline: deadline)
            try await until("the deadline passes") { Instant.now >= deadline }
            gate.open()
            #expect(await failure(of: late)?.code == .deadlineExceeded)
            #expect(pool.counts.expired == 1)
        }
        #expect(journal.entries.isEmpty)
    }

    @Test func aCancelledTaskTakesItsWaitingWorkAlong() async throws {
        let journal = Journal()
        try await withBusyPool { pool, gate in
            let cancelled = try await enqueue("cancelled", tenant: "a", on: pool, journal)
            let kept = try await enqueue("kept", tenant: "a", on: pool, journal)
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            #expect(pool.counts.queued == 1)
            #expect(pool.counts.cancelled == 1)
            gate.open()
            try await kept.value
        }
        #expect(journal.entries == ["kept"])
    }

    @Test func aCancelledTaskDoesNotWaitForRunningWork() async throws {
        let pool = WorkerPool(name: "test", workers: 1, queueMax: 4, queueMaxPerTenant: 4)
        let gate = Gate()
        let task = Task { try await pool.run(tenant: .empty, deadline: .distantFuture) { gate.pass() } }
        try await gate.whenEntered()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(pool.counts.running == 1)
        gate.open()
        close(pool)
        #expect(pool.counts.done == 1)
    }

    @Test func closeFailsWhatWaitsAndFinishesWhatRuns() async throws {
        let journal = Journal()
        let pool = WorkerPool(name: "test", workers: 1, queueMax: 4, queueMaxPerTenant: 4)
        let gate = Gate()
        let running = Task { try await pool.run(tenant: .empty, deadline: .distantFuture) { gate.pass() } }
        try await gate.whenEntered()
        let waiting = try await enqueue("waiting", tenant: "a", on: pool, journal)
        let closer = OSThread(name: "closer") { pool.close() }
        #expect(await failure(of: waiting)?.code == .unavailable)
        gate.open()
        try await running.value
        join(closer)
        #expect(journal.entries.isEmpty)
        #expect(
            await failure(of: Task { try await pool.run(tenant: .empty, deadline: .distantFuture) {} })?.code
                == .unavailable)
        close(pool)
    }

    // MARK: Answers of short works

    /// A pool whose only worker has just finished a work marked as short that took ten times `longBacklog`: whatever
    /// waits now makes a backlog.
    private func withBacklog(_ body: (WorkerPool, Gate, Journal) async throws -> Void) async throws {
        let journal = Journal()
        try await withBusyPool(queueMax: 64, queueMaxPerTenant: 64) { pool, gate in
            let slow = try await enqueue("slow", on: pool, journal, isShort: true) {
                usleep(20_000)
            }
            gate.open()
            try await slow.value
            let inner = Gate()
            let blocker = Task { try await pool.run(tenant: .empty, deadline: .distantFuture) { inner.pass() } }
            try await inner.whenEntered()
            try await body(pool, inner, journal)
            inner.open()
            try await blocker.value
            gate.open()
        }
        #expect(journal.entries.first == "slow")
    }

    /// Whether the semaphore is signalled within 20 s: a test that fails should end.
    private static func hears(_ semaphore: Base.Semaphore) -> Bool {
        for _ in 0..<20_000 {
            if semaphore.takeSignal() { return true }
            usleep(1_000)
        }
        return false
    }

    @Test func answersOfShortWorksAreGivenTogetherInABacklog() async throws {
        try await withBacklog { pool, gate, journal in
            let isAnswered = Mutex(false)
            let first = try await enqueue("first", on: pool, journal, isShort: true)
            let answered = Task {
                try await first.value
                isAnswered.withLock { $0 = true }
            }
            let second = try await enqueue("second", on: pool, journal, isShort: true) {
                // This is long enough for an answer that has been given to arrive.
                usleep(20_000)
                journal.note(isAnswered.withLock { $0 } ? "first is answered" : "first waits")
            }
            let third = try await enqueue("third", on: pool, journal, isShort: true)
            gate.open()
            for task in [answered, second, third] { try await task.value }
            #expect(journal.entries.dropFirst() == ["first", "second", "first waits", "third"])
            gate.open()
        }
    }

    /// The last work ends only after the first one was answered.
    private func expectAnswered(
        _ pool: WorkerPool, _ gate: Gate, _ journal: Journal, count: Int, lastIsShort: Bool
    ) async throws {
        let answered = Base.Semaphore()
        var tasks: [Task<Void, any Error>] = []
        for number in 0..<count {
            tasks.append(try await enqueue("\(number)", on: pool, journal, isShort: true))
        }
        let heard = Mutex(false)
        let last = try await enqueue("last", on: pool, journal, isShort: lastIsShort) {
            let didHear = Self.hears(answered)
            heard.withLock { $0 = didHear }
        }
        gate.open()
        try await tasks[0].value
        answered.signal()
        for task in tasks + [last] { try await task.value }
        #expect(heard.withLock { $0 })
        #expect(journal.entries.suffix(count + 1) == tasks.indices.map(String.init) + ["last"])
        gate.open()
    }

    @Test func noMoreThanSomeAnswersWaitForAnother() async throws {
        try await withBacklog { pool, gate, journal in
            try await expectAnswered(
                pool, gate, journal, count: WorkerPool.answersTogetherMax, lastIsShort: true)
        }
    }

    @Test func noAnswerWaitsForALongWork() async throws {
        try await withBacklog { pool, gate, journal in
            try await expectAnswered(pool, gate, journal, count: 1, lastIsShort: false)
        }
    }

    @Test func noAnswerWaitsWithoutABacklog() async throws {
        let journal = Journal()
        try await withBusyPool { pool, gate in
            try await expectAnswered(pool, gate, journal, count: 1, lastIsShort: true)
        }
    }
}

private func join(_ thread: OSThread) { thread.join() }

extension Resident {
    fileprivate func hash(on pool: WorkerPool) async throws -> String {
        let loop = loop
        let answer = try await pool.run(tenant: .empty, deadline: .distantFuture) {
            loop.isCurrent ? "hashed here" : "hashed elsewhere"
        }
        return answer + (loop.isCurrent ? ", back on the loop" : ", lost")
    }
}
