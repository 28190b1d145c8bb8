import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Reactor

private func close(_ pool: WorkerPool) { pool.close() }

private func niceness() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }

/// SCHED_IDLE of <sched.h>, which Swift's Glibc does not show.
private let idlePolicy: Int32 = 5

@Suite struct WorkerPriorityTests {
    /// The nice value and the policy of each thread of a pool. Each work waits until all are in, so that no thread is
    /// asked twice.
    private func threads(count: Int, _ priority: WorkerPriority) async throws -> [(niceness: Int32, policy: Int32)] {
        let pool = WorkerPool(
            name: "test", workers: count, queueMax: 8, queueMaxPerTenant: 8, priority: priority)
        defer { close(pool) }
        let present = Counter()
        return try await withThrowingTaskGroup(of: (Int32, Int32).self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await pool.run(tenant: .empty, deadline: .distantFuture) {
                        present.add()
                        while present.value < count { sched_yield() }
                        return (niceness(), sched_getscheduler(0))
                    }
                }
            }
            var found: [(niceness: Int32, policy: Int32)] = []
            for try await (niceness, policy) in group { found.append((niceness, policy)) }
            return found.sorted { $0.niceness < $1.niceness }
        }
    }

    @Test func loweredWorkersHaveTheirNiceValue() async throws {
        let found = try await threads(count: 2, .lowered(by: 17))
        #expect(found.map(\.niceness) == [17, 17] && found.map(\.policy) == [SCHED_OTHER, SCHED_OTHER])
        #expect(niceness() < 17)
    }

    /// The nice value and the policy of the thread with this name; nil if there is none.
    private func thread(named name: String) -> (niceness: Int32, policy: Int32)? {
        guard let directory = opendir("/proc/self/task") else { return nil }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let text = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard let id = Int32(text), let file = fopen("/proc/self/task/\(text)/comm", "r") else { continue }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 64)
            guard fgets(&line, 64, file) != nil else { continue }
            guard String(decoding: line.prefix { $0 > 32 }.map { UInt8($0) }, as: UTF8.self) == name else { continue }
            return (getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(id)), sched_getscheduler(id))
        }
        return nil
    }

    /// Looked at from outside: on a busy machine, a thread that gets what is spare may get nothing.
    @Test func allWorkersButTheFirstGetWhatIsSpare() async throws {
        let pool = WorkerPool(
            name: "spare", workers: 3, queueMax: 8, queueMaxPerTenant: 8,
            priority: .spare(exceptFirst: 4, andLong: 10))
        defer { close(pool) }
        let expected: [(niceness: Int32?, policy: Int32)] = [(4, SCHED_OTHER), (nil, idlePolicy), (nil, idlePolicy)]
        for (number, role) in expected.enumerated() {
            try await until("worker \(number) has its role") {
                guard let found = thread(named: "spare-\(number)") else { return false }
                return found.policy == role.policy && found.niceness == role.niceness ?? found.niceness
            }
        }
    }

    /// Works that fill the queue again and again: a lost call to a worker would leave a work behind for ever.
    @Test(arguments: 1...4)
    func noCallGetsLost(workers: Int) async throws {
        let pool = WorkerPool(
            name: "test", workers: workers, queueMax: 64, queueMaxPerTenant: 64, memoryMax: 2,
            priority: .spare(exceptFirst: 4, andLong: 10))
        let done = Counter()
        for _ in 0..<40 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<16 {
                    let cost = WorkCost(time: .milliseconds(Int64(number % 3) * 100), memoryByteCount: number % 4)
                    // A work that gets no processor may be begun once more, and is answered once.
                    group.addTask {
                        try await pool.run(tenant: .empty, deadline: .distantFuture, cost: cost) {}
                        done.add()
                    }
                }
                try await group.waitForAll()
            }
        }
        close(pool)
        #expect(done.value == 640)
    }

    @Test func theOnlyWorkerIsTheFirst() async throws {
        let found = try await threads(count: 1, .spare(exceptFirst: 4, andLong: 10))
        #expect(found.map(\.policy) == [SCHED_OTHER] && found.map(\.niceness) == [4])
    }
}

@Suite struct WorkerIdlingTests {
    private enum Step: Equatable {
        case work, pause, rest
    }

    /// The steps of a pool's thread, in order.
    private final class Steps: Sendable {
        private let steps = Mutex<[Step]>([])
        let changed = Semaphore()

        func add(_ step: Step) {
            steps.withLock { $0.append(step) }
            changed.signal()
        }

        var all: [Step] { steps.withLock { $0 } }
    }

    private func makePool(_ steps: Steps, restAfter: Duration) -> WorkerPool {
        WorkerPool(
            name: "test", workers: 1, queueMax: 8, queueMaxPerTenant: 8,
            idling: WorkerIdling(pause: { steps.add(.pause) }, rest: { steps.add(.rest) }, restAfter: restAfter))
    }

    private func wait(for count: Int, _ steps: Steps) { for _ in 0..<count { steps.changed.wait() } }

    @Test func aThreadPausesAfterItsWorkAndRestsWhenNoneComes() async throws {
        let steps = Steps()
        let pool = makePool(steps, restAfter: .milliseconds(5))
        // The thread may rest before it is given work: nothing was there for 5 ms.
        try await pool.run(tenant: .empty, deadline: .distantFuture) { steps.add(.work) }
        let begin = steps.all.first == .rest ? 1 : 0
        wait(for: begin + 3, steps)
        #expect(Array(steps.all.dropFirst(begin)) == [.work, .pause, .rest])
        close(pool)
    }

    @Test func aThreadThatRestedWorksAgain() async throws {
        let steps = Steps()
        let pool = makePool(steps, restAfter: .zero)
        wait(for: 1, steps)
        try await pool.run(tenant: .empty, deadline: .distantFuture) { steps.add(.work) }
        wait(for: 3, steps)
        #expect(steps.all == [.rest, .work, .pause, .rest])
        close(pool)
    }

    @Test func aThreadRestsBeforeItEnds() async throws {
        let steps = Steps()
        let pool = makePool(steps, restAfter: .days(1))
        try await pool.run(tenant: .empty, deadline: .distantFuture) { steps.add(.work) }
        wait(for: 2, steps)
        close(pool)
        #expect(steps.all == [.work, .pause, .rest])
    }

    @Test func aThreadDoesNotPauseWhileWorkWaits() async throws {
        let steps = Steps()
        let pool = makePool(steps, restAfter: .days(1))
        let opened = Semaphore()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await pool.run(tenant: .empty, deadline: .distantFuture) {
                        opened.wait()
                        steps.add(.work)
                    }
                }
            }
            try await until("three works wait") { pool.counts.queued >= 3 }
            for _ in 0..<4 { opened.signal() }
            try await group.waitForAll()
        }
        wait(for: 5, steps)
        #expect(steps.all == [.work, .work, .work, .work, .pause])
        close(pool)
    }
}
