import Base
import TestSupport

@testable import Reactor

/// A pool without threads, on a clock of its own: which work begins when, if each work takes the processor for the
/// time that the test says. Workers are called by signals as the real ones are, so that a lost call shows.
struct PoolSimulation {
    struct Begun {
        let work: Work
        let waitedFor: Int64
    }

    private struct Running {
        let work: Work
        let nanoseconds: Int64
        let end: Instant
    }

    private(set) var queue: WorkQueue
    private(set) var now = Instant(nanoseconds: 1)
    /// The works in the order in which they began.
    private(set) var begun: [Begun] = []
    /// The time that each tenant's ended works took.
    private(set) var served: [Text: Int64] = [:]
    private(set) var expiredCount = 0
    /// Whether the works that ran together kept within `memoryMax`; a larger work may hold memory alone.
    private(set) var isMemoryKept = true
    private(set) var longestRun = 0
    private let workers: Int
    private let memoryMax: Int
    private var running: [Running] = []
    private var signals = 0
    private var durations: [ObjectIdentifier: Int64] = [:]
    private var submittedAt: [ObjectIdentifier: Instant] = [:]

    init(workers: Int, memoryMax: Int = .max) {
        self.workers = workers
        self.memoryMax = memoryMax
        self.queue = WorkQueue(
            name: "simulated",
            limits: .init(workers: workers, queueMax: 1_000_000, queueMaxPerTenant: 1_000_000, memoryMax: memoryMax))
    }

    var runningCount: Int { running.count }
    var isIdle: Bool { running.isEmpty }
    func runningCount(of tenant: Text) -> Int { running.count { $0.work.tenant == tenant } }
    var longRunningCount: Int { running.count { $0.work.cost.time > WorkAdmission.longWork } }

    @discardableResult
    mutating func submit(
        _ tenant: Text, taking nanoseconds: Int64, cost: WorkCost = .none, deadline: Instant = .distantFuture
    ) -> Work {
        let work = Work(tenant: tenant, deadline: deadline, cost: cost, execute: { {} }, fail: { _ in })
        durations[ObjectIdentifier(work)] = nanoseconds
        submittedAt[ObjectIdentifier(work)] = now
        var expired: [Work] = []
        do { try queue.submit(work, now: now, expired: &expired) } catch { preconditionFailure("\(error)") }
        signals += 1
        callWorkers()
        return work
    }

    mutating func cancel(_ work: Work) { queue.cancel(work) }

    /// Advances the clock until `end`, or until nothing runs any more.
    mutating func run(until end: Instant = .distantFuture) {
        while let next = running.indices.min(by: { running[$0].end < running[$1].end }), running[next].end <= end {
            finish(next)
        }
        if end < .distantFuture { now = end }
    }

    /// Ends the work that ends first.
    mutating func step() {
        if let next = running.indices.min(by: { running[$0].end < running[$1].end }) { finish(next) }
    }

    private mutating func finish(_ index: Int) {
        let ended = running.remove(at: index)
        now = ended.end
        served[ended.work.tenant, default: 0] += ended.nanoseconds
        signals += queue.finished(ended.work, afterNanoseconds: ended.nanoseconds)
        callWorkers()
    }

    private mutating func callWorkers() {
        while signals > 0 && running.count < workers {
            signals -= 1
            let batch = queue.take(now: now)
            expiredCount += batch.expired.count
            guard let work = batch.next else { continue }
            let nanoseconds = durations[ObjectIdentifier(work)] ?? 0
            running.append(Running(work: work, nanoseconds: nanoseconds, end: now.advanced(byNanoseconds: nanoseconds)))
            let waitedFor = now.nanoseconds(since: submittedAt[ObjectIdentifier(work)] ?? now)
            begun.append(Begun(work: work, waitedFor: waitedFor))
            let held = running.filter { $0.work.cost.memoryByteCount > 0 }
            let sum = held.reduce(0) { $0 + $1.work.cost.memoryByteCount }
            if sum > memoryMax && held.count > 1 { isMemoryKept = false }
            longestRun = max(longestRun, longRunningCount)
        }
    }
}

extension WorkQueue {
    /// The work had the processor all the time, without an interruption.
    @discardableResult
    mutating func finished(_ work: Work, lane: WorkLane = .all, afterNanoseconds nanoseconds: Int64) -> Int {
        finished(work, lane: lane, use: .init(nanoseconds: nanoseconds, processorNanoseconds: nanoseconds))
    }
}
