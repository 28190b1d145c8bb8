import Base
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Reactor

/// Which answers of ended works wait for the answers of the next works.
@Suite struct HeldAnswersTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    /// A queue, and the letters of the answers that it releases.
    private struct Trial {
        var queue: WorkQueue
        private let letters = Letters()

        private final class Letters: Sendable {
            private let text = Mutex("")
            func append(_ letter: Character) { text.withLock { $0.append(letter) } }
            func take() -> String { text.withLock { $0.take() } }
        }

        init(workers: Int) {
            let limits = WorkQueue.Limits(workers: workers, queueMax: 20, queueMaxPerTenant: 20, answersTogetherMax: 4)
            queue = WorkQueue(name: "test", limits: limits)
        }

        mutating func submit(_ time: Duration = .zero) {
            var expired: [Work] = []
            #expect(throws: Never.self) {
                try queue.submit(Self.work(time), now: HeldAnswersTests.start, expired: &expired)
            }
        }

        static func work(_ time: Duration = .zero, deadline: Instant = .distantFuture) -> Work {
            let cost = WorkCost(time: time)
            return Work(tenant: "a", deadline: deadline, cost: cost, execute: { {} }, fail: { _ in })
        }

        mutating func begin(running: Int, queued: Int) throws {
            while queue.counts.running + queue.counts.queued < running + queued { submit() }
            while queue.counts.running < running { _ = try #require(queue.take(now: HeldAnswersTests.start).next) }
            #expect(queue.counts.running == running && queue.counts.queued == queued)
        }

        /// Ends a work with the answer of this letter, and returns the letters of the answers that are due then.
        mutating func group(_ letter: Character, deadline: Instant = .distantFuture) -> String {
            queue.group({ [letters] in letters.append(letter) }, of: Self.work(deadline: deadline))
            return due()
        }

        mutating func due() -> String {
            while let answer = queue.takeDueAnswer() { answer() }
            #expect(!queue.hasDueAnswers)
            return letters.take()
        }
    }

    @Test func answersComeTogetherInABacklog() throws {
        var trial = Trial(workers: 2)
        #expect(trial.group("a") == "a")
        // Fewer works wait than there are workers.
        try trial.begin(running: 1, queued: 1)
        #expect(trial.group("b") == "b")
        try trial.begin(running: 1, queued: 2)
        #expect(trial.group("c").isEmpty)
        #expect(trial.group("d") == "cd")
        try trial.begin(running: 1, queued: 5)
        for letter in "ef" { #expect(trial.group(letter).isEmpty) }
        #expect(trial.group("g") == "efg")
        try trial.begin(running: 1, queued: 12)
        for letter in "hij" { #expect(trial.group(letter).isEmpty) }
        #expect(trial.group("k") == "hijk")
        #expect(trial.group("l").isEmpty)
        // A worker that has nothing to do gives the answer.
        trial.queue.releaseAnswers()
        #expect(trial.due() == "l")
    }

    @Test func noAnswerWaitsAlone() throws {
        var trial = Trial(workers: 1)
        for _ in 0..<3 { trial.submit() }
        #expect(trial.group("a") == "a")
    }

    @Test func noAnswerWaitsOnACrowdedMachine() throws {
        var trial = Trial(workers: 1)
        try trial.begin(running: 2, queued: 10)
        #expect(trial.group("a").isEmpty)
        let slow = Trial.work(.milliseconds(10))
        trial.queue.finished(slow, lane: .first, afterNanoseconds: 1_000_000_000)
        #expect(trial.queue.counts.running == 1)
        #expect(trial.group("b") == "ab")
        #expect(trial.group("c") == "c")
    }

    /// A work of 10 ms is expected to be done within 80 ms: four times as long, plus the patience.
    @Test(arguments: [(80, "ab"), (81, "")]) func noAnswerWaitsUntilItsDeadline(milliseconds: Int, due: String) throws {
        var trial = Trial(workers: 1)
        try trial.begin(running: 1, queued: 0)
        for _ in 0..<5 { trial.submit(.milliseconds(10)) }
        #expect(trial.group("a", deadline: Self.start.advanced(by: .milliseconds(milliseconds))).isEmpty)
        #expect(trial.group("b").isEmpty)
        _ = try #require(trial.queue.take(now: Self.start).next)
        #expect(trial.due() == due)
        // The deadline no longer counts once its answer was given.
        #expect(trial.group("c").isEmpty)
        _ = try #require(trial.queue.take(now: Self.start).next)
        #expect(trial.due().isEmpty)
    }

    @Test func noAnswerWaitsForALongWork() throws {
        var trial = Trial(workers: 1)
        try trial.begin(running: 1, queued: 0)
        for milliseconds in [100, 101] { trial.submit(.milliseconds(milliseconds)) }
        #expect(trial.group("a").isEmpty)
        _ = try #require(trial.queue.take(now: Self.start).next)
        #expect(trial.due().isEmpty)
        _ = try #require(trial.queue.take(now: Self.start).next)
        #expect(trial.due() == "a")
    }

    /// Several answers at once would hold up the other threads that want the processors.
    @Test func twoAnswersComeTogetherWhereOthersWantToRun() throws {
        var trial = Trial(workers: 1)
        trial.submit(.milliseconds(10))
        let work = try #require(trial.queue.take(now: Self.start).next)
        let use = ProcessorDemand.Use(nanoseconds: 10_000_000, processorNanoseconds: 10_000_000, interruptions: 1_000)
        trial.queue.finished(work, lane: .first, use: use)
        try trial.begin(running: 1, queued: 10)
        #expect(trial.group("a").isEmpty)
        #expect(trial.group("b") == "ab")
    }

    /// Works of all kinds, some of them cancelled, in a pool that is closed in the middle: each caller gets an answer.
    @Test(.timeLimit(.minutes(2))) func noAnswerIsLost() async throws {
        var random = SeededRandom.printed()
        for _ in 0..<20 {
            let pool = WorkerPool(
                name: "held", workers: 2, queueMax: 100, queueMaxPerTenant: 100,
                priority: .spare(exceptFirst: 4, andLong: 10))
            let (ended, isClosing) = (Counter(), Bool.random(using: &random))
            let kinds = (0..<60).map { _ in Int.random(in: 0..<10, using: &random) }
            let closesAfter = UInt64.random(in: 0..<60, using: &random)
            await withTaskGroup(of: Void.self) { group in
                for (index, kind) in kinds.enumerated() {
                    let time = Duration.milliseconds(kind == 0 ? 200 : 1)
                    group.addTask {
                        let task = Task {
                            try await pool.run(
                                tenant: .empty, deadline: .now.advanced(by: .minutes(1)), cost: WorkCost(time: time)
                            ) {
                                sched_yield()
                                return index
                            }
                        }
                        if kind == 1 { task.cancel() }
                        switch await task.result {
                        case .success(let answer): #expect(answer == index, "nobody gets another caller's answer")
                        // Only a work that was cancelled, or whose pool was closed, may fail.
                        case .failure(let error): #expect(kind == 1 || isClosing, "\(error)")
                        }
                        ended.add()
                    }
                }
                if isClosing {
                    group.addTask {
                        while ended.value < closesAfter { await Task.yield() }
                        close(pool)
                    }
                }
            }
            #expect(ended.value == 60)
            // A worker notes the end of its work after the answer.
            try await until("no work runs") { pool.counts.running == 0 }
            close(pool)
        }
    }
}

private func close(_ pool: WorkerPool) { pool.close() }

extension String {
    fileprivate mutating func take() -> String {
        defer { self = "" }
        return self
    }
}
