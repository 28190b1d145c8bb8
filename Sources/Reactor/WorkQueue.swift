import Base

/// A piece of blocking work and how to answer whoever waits for it. Exactly one of the two closures is called.
final class Work: Sendable {
    let tenant: Text
    let deadline: Instant
    /// Takes less than a millisecond: its answer may wait for that of the next one.
    let isShort: Bool
    /// Does the work; what it returns answers.
    let execute: @Sendable () -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void

    init(
        tenant: Text, deadline: Instant, isShort: Bool = false,
        execute: @escaping @Sendable () -> @Sendable () -> Void, fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.tenant = tenant
        self.deadline = deadline
        self.isShort = isShort
        self.execute = execute
        self.fail = fail
    }
}

/// What a pool has done and has to do, at one moment.
public struct WorkerPoolCounts: Sendable, Equatable {
    public var queued = 0
    public var running = 0
    /// Ran to its end, with a result or an error.
    public var done: UInt64 = 0
    /// Turned away because a queue was full.
    public var refused: UInt64 = 0
    /// Never run: the deadline passed before its turn came.
    public var expired: UInt64 = 0
    /// Never run: the waiting task was cancelled.
    public var cancelled: UInt64 = 0
}

/// The rules of a worker pool without its threads: bounds, fairness, deadlines, estimates.
struct WorkQueue: Sendable {
    struct Limits: Sendable {
        var workers: Int
        var queueMax: Int
        var queueMaxPerTenant: Int
    }

    /// What `take` found: work to run, and work to fail with `Failure.expired`.
    struct Batch {
        var next: Work?
        var expired: [Work] = []
    }

    private let name: String
    private let limits: Limits
    private var queue = FairQueue<Work>()
    private(set) var counts = WorkerPoolCounts()
    private(set) var isClosed = false
    /// Moving average of one work's run time: an eighth of every new one.
    private var averageNanoseconds: Int64 = 0
    /// The same of short works alone: one long one says nothing about how long they wait.
    private var averageShortNanoseconds: Int64 = 0
    /// No queued deadline is earlier: spares the search while a full queue holds nothing expired.
    private var earliestDeadline = Instant.distantFuture

    init(name: String, limits: Limits) {
        self.name = name
        self.limits = limits
    }

    /// Queues `work` or throws why not; `expired` is what had to leave to make room, for the caller to fail.
    mutating func submit(_ work: Work, now: Instant, expired: inout [Work]) throws(Failure) {
        guard !isClosed else { throw .poolClosed }
        guard now < work.deadline else {
            counts.expired += 1
            throw .workExpired
        }
        if isFull(for: work.tenant) && earliestDeadline <= now { expired = removeExpired(now: now) }
        guard !isFull(for: work.tenant) else {
            counts.refused += 1
            throw Failure(
                .resourceExhausted, "SERVER_OVERLOADED", "too much \(name) work is waiting; try again later",
                retryAfter: retryAfter)
        }
        queue.append(work, tenant: work.tenant)
        counts.queued = queue.count
        earliestDeadline = min(earliestDeadline, work.deadline)
    }

    /// The next work that is still in time, counted as running.
    mutating func take(now: Instant) -> Batch {
        var batch = Batch()
        while let work = queue.popFirst() {
            if now < work.deadline {
                batch.next = work
                counts.running += 1
                break
            }
            batch.expired.append(work)
        }
        counts.expired += UInt64(batch.expired.count)
        counts.queued = queue.count
        return batch
    }

    mutating func finished(_ work: Work, afterNanoseconds nanoseconds: Int64) {
        Self.move(&averageNanoseconds, nanoseconds)
        if work.isShort { Self.move(&averageShortNanoseconds, nanoseconds) }
        counts.running -= 1
        counts.done += 1
    }

    /// Takes `work` out if it still waits.
    mutating func cancel(_ work: Work) {
        guard queue.remove(tenant: work.tenant, where: { $0 === work }) != nil else { return }
        counts.cancelled += 1
        counts.queued = queue.count
    }

    /// Refuses everything from now on and returns what waits, for the caller to fail.
    mutating func close() -> [Work] {
        isClosed = true
        counts.queued = 0
        return queue.removeAll { _ in true }
    }

    /// When what is ahead should be done, in milliseconds rounded up, and not below a second: a client that comes
    /// back sooner only adds to the load.
    private var retryAfter: Duration {
        let nanoseconds = nanoseconds(of: queue.count + counts.running, each: averageNanoseconds)
        return .milliseconds(max(1_000, nanoseconds / 1_000_000 + 1))
    }

    /// How long what is queued takes, if it is short.
    var backlog: Duration { .nanoseconds(nanoseconds(of: queue.count, each: averageShortNanoseconds)) }

    /// All workers together.
    private func nanoseconds(of count: Int, each nanoseconds: Int64) -> Int64 {
        let (sum, overflow) = nanoseconds.multipliedReportingOverflow(by: Int64(count))
        return overflow ? Int64.max : sum / Int64(limits.workers)
    }

    private static func move(_ average: inout Int64, _ nanoseconds: Int64) {
        average = average == 0 ? nanoseconds : average + (nanoseconds - average) / 8
    }

    private func isFull(for tenant: Text) -> Bool {
        queue.count >= limits.queueMax || queue.count(of: tenant) >= limits.queueMaxPerTenant
    }

    private mutating func removeExpired(now: Instant) -> [Work] {
        var earliest = Instant.distantFuture
        let expired = queue.removeAll { work in
            if work.deadline <= now { return true }
            earliest = min(earliest, work.deadline)
            return false
        }
        earliestDeadline = earliest
        counts.expired += UInt64(expired.count)
        counts.queued = queue.count
        return expired
    }
}

extension Failure {
    static let workExpired = Failure(
        .deadlineExceeded, "DEADLINE_EXCEEDED", "the deadline passed before the work began")
    static let poolClosed = Failure(.unavailable, "SERVER_SHUTTING_DOWN", "the server is shutting down")
}
