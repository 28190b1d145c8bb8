public import Base
import Synchronization

/// A bounded pool of threads for work that blocks or takes long: password hashes, RSA, files, libcurl.
///
/// The tenant whose work took the least processor time goes next, so that expensive work delays its own tenant. Within
/// a tenant, sources share the turns. If a queue is full, whoever has most works in it gives a place to one who has
/// fewer. See `WorkAdmission` for the works that may run together. Work whose deadline passes while it waits is never
/// run. Close the pool before it is dropped.
///
/// Waking a caller that waits for an answer costs some microseconds, which is much beside a short work. So while work
/// has to wait longer than `longBacklog`, a worker gives up to `answersTogetherMax` answers of short works at once.
/// Answers of hashes are given together for another reason: see `WorkQueue.group`.
public final class WorkerPool: Sendable {
    /// The "tenant" of the server's own work, such as a backup, in a pool of tenants' work: no tenant has such an id.
    public static let ownWork: Text = WorkLine.server

    static let answersTogetherMax = 8
    static let longBacklog = Duration.milliseconds(2)

    /// The state that the threads share. They do not retain the pool, so that dropping it without `close()` is noticed.
    fileprivate final class Shared: Sendable {
        let queue: Mutex<WorkQueue>
        let waitedNanoseconds = Counter()
        /// A semaphore for each kind of worker.
        private let wakeups: [Semaphore]
        private let lanes: Set<WorkLane>

        init(_ queue: WorkQueue, _ roles: [WorkerRole]) {
            self.queue = Mutex(queue)
            self.lanes = Set(roles.map(\.lane))
            self.wakeups = WorkLane.allCases.map { _ in Semaphore() }
        }

        /// The semaphore that wakes a worker of `lane`.
        // Proof: `wakeups` has one for each case, and raw values count the cases.
        func wakeup(of lane: WorkLane) -> Semaphore { wakeups[lane.rawValue] }

        /// Wakes a worker of each kind that takes `work`: on a busy machine, one of them might wait seconds for a
        /// processor. The worker that comes second finds nothing to do.
        func call(for work: Work) {
            for lane in lanes where lane.takes(work) { wakeup(of: lane).signal() }
        }

        /// Wakes a worker of each kind.
        func callAll() {
            for lane in lanes { wakeup(of: lane).signal() }
        }
    }

    private let shared: Shared
    private let threads: Mutex<[OSThread]>

    /// `queueMax` counts waiting work, not running work; `memoryMax` bounds the memory of running work, in bytes.
    /// `workersPerTenantMax`: for works that wait for servers which the tenants name. Such a tenant has only a share of
    /// the workers, at most this many, which shrinks as other tenants want some (`WorkerShares`); its other works wait,
    /// also while workers are idle.
    public init(
        name: String, workers: Int, queueMax: Int, queueMaxPerTenant: Int, memoryMax: Int = .max,
        workersPerTenantMax: Int? = nil, priority: WorkerPriority = .lowered(by: 0), idling: WorkerIdling? = nil
    ) {
        precondition(workers > 0 && queueMax > 0 && queueMaxPerTenant > 0, "a pool needs workers and room")
        let limits = WorkQueue.Limits(
            workers: workers, queueMax: queueMax, queueMaxPerTenant: queueMaxPerTenant, memoryMax: memoryMax,
            answersTogetherMax: priority.getsSpareTime ? Self.answersTogetherMax : 1,
            workersPerTenantMax: workersPerTenantMax)
        let roles = priority.roles(workers: workers)
        let shared = Shared(WorkQueue(name: name, limits: limits), roles)
        self.shared = shared
        self.threads = Mutex(
            roles.enumerated().map { index, role in
                OSThread(name: "\(name)-\(index)") {
                    role.priority.applyToCurrentThread()
                    Self.workUntilClosed(shared, role.lane, idling)
                    idling?.rest()
                }
            })
    }

    public var counts: WorkerPoolCounts { shared.queue.withLock { $0.counts } }

    /// The sum of the times that works waited for a thread.
    public var waited: Duration { .nanoseconds(Int64(clamping: shared.waitedNanoseconds.value)) }

    /// How long a work that is queued now would wait, if the waiting works are short.
    public var backlog: Duration { shared.queue.withLock { $0.backlog } }

    /// Runs `work` on one of the threads and returns or throws what it does. `tenant`: whose work it is; `ownWork` for
    /// the server's own. `source`: whom it is for, among those who share the tenant's turns. `isShort`: it takes less
    /// than a millisecond. `isPatient`: nobody waits for it, and it may take long (a pool that shares its workers looks
    /// at that). `cost`: the time that it is expected to take, and the memory that it holds.
    ///
    /// - Throws: `Failure` RESOURCE_EXHAUSTED `SERVER_OVERLOADED` with `retryAfter` if a queue is full, at once or when
    ///   this work gives its place to another one, DEADLINE_EXCEEDED if `deadline` passed before the work began,
    ///   UNAVAILABLE after the pool is closed; `CancellationError` if the task is cancelled: waiting work is taken out,
    ///   running work goes on, and its result is dropped.
    public func run<T: Sendable>(
        tenant: Text, source: Text = .empty, deadline: Instant, isShort: Bool = false, isPatient: Bool = false,
        cost: WorkCost = .none, _ work: @escaping @Sendable () throws -> T
    ) async throws -> T {
        try Task.checkCancellation()
        return try await begin(
            tenant: tenant, source: source, deadline: deadline, isShort: isShort, isPatient: isPatient, cost: cost, work
        ).value()
    }

    /// Queues `work` as `run` does, and returns at once, from any thread. A work whose value nobody awaits is done all
    /// the same. `trace`: that of the call.
    public func begin<T: Sendable>(
        tenant: Text, source: Text = .empty, deadline: Instant, isShort: Bool = false, isPatient: Bool = false,
        cost: WorkCost = .none, trace: CallTrace? = .current, _ work: @escaping @Sendable () throws -> T
    ) throws(Failure) -> BegunWork<T> {
        let promise = Promise<T>()
        let item = Work(
            tenant: tenant, source: source, deadline: deadline, isShort: isShort, isPatient: isPatient, cost: cost,
            timed(work, trace), promise)
        try submit(item)
        return BegunWork(shared: shared, work: item, promise: promise)
    }

    /// A work that waits, runs, or is done.
    public struct BegunWork<Value: Sendable>: Sendable {
        fileprivate let shared: Shared
        fileprivate let work: Work
        fileprivate let promise: Promise<Value>

        /// Returns or throws what the work does; once. `CancellationError` if the task is cancelled: waiting work is
        /// taken out, running work goes on, and its result is dropped.
        public func value() async throws -> Value {
            try await withTaskCancellationHandler {
                try await promise.value()
            } onCancel: {
                shared.queue.withLock { $0.cancel(work) }
                promise.fail(CancellationError())
            }
        }
    }

    /// The same work, whose waiting time is counted. The times are also added to the call's trace, if there is one.
    private func timed<T>(
        _ work: @escaping @Sendable () throws -> T, _ trace: CallTrace?
    ) -> @Sendable () throws -> T {
        let (shared, submitted) = (shared, Instant.now)
        return {
            let begun = Instant.now
            let waited = begun.nanoseconds(since: submitted)
            shared.waitedNanoseconds.add(UInt64(clamping: waited))
            guard let trace else { return try work() }
            trace.add(queuedNanoseconds: waited)
            defer { trace.add(workedNanoseconds: Instant.now.nanoseconds(since: begun)) }
            return try work()
        }
    }

    /// Fails waiting work with UNAVAILABLE, lets running work come to its end, and ends the threads.
    @available(*, noasync, message: "blocks the thread")
    public func close() {
        let waiting = shared.queue.withLock { $0.close() }
        for work in waiting { work.fail(Failure.poolClosed) }
        let threads = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        shared.callAll()
        for thread in threads { thread.join() }
    }

    private func submit(_ work: Work) throws(Failure) {
        var expired: [Work] = []
        defer { for work in expired { work.fail(Failure.workExpired) } }
        let displaced = try shared.queue.withLock { queue throws(Failure) in
            try queue.submit(work, now: .now, expired: &expired)
        }
        if let displaced { displaced.work.fail(displaced.failure) }
        shared.call(for: work)
    }

    /// There is one signal per accepted work. If the work was cancelled or has expired, its signal is just used up. If
    /// the work may not begin yet, the signal is given again when a work ends. Closing is one more signal, which each
    /// thread passes on.
    private static func workUntilClosed(_ shared: Shared, _ lane: WorkLane, _ idling: WorkerIdling?) {
        let wakeup = shared.wakeup(of: lane)
        var answers: [HeldAnswers.Answer] = []
        var meter = ThreadMeter()
        let wakeups = HeldWakeups()
        while true {
            waitForWork(shared, lane, idling)
            repeat {
                let (next, givesWayUntil) = next(shared, lane, wakeups)
                guard let work = next else { continue }
                if !work.isShort { give(&answers, wakeups) }
                let start = Instant.now
                GivingWay.begin(until: givesWayUntil)
                let answer = work.execute()
                GivingWay.end()
                let use = meter.use(since: start)
                let (calls, isBehind) = shared.queue.withLock { queue in
                    let calls = queue.finished(work, lane: lane, use: use)
                    if work.isShort { answers.append(answer) } else { queue.group(answer, of: work) }
                    return (calls, queue.backlog > longBacklog)
                }
                for _ in 0..<calls { shared.callAll() }
                if work.isShort {
                    if !isBehind || answers.count == answersTogetherMax { give(&answers, wakeups) }
                } else {
                    giveDueAnswers(shared, wakeups)
                }
            } while wakeup.takeSignal()
            give(&answers, wakeups)
            let isClosed = shared.queue.withLock { queue in
                queue.releaseAnswers()
                return queue.isClosed
            }
            giveDueAnswers(shared, wakeups)
            if isClosed { return wakeup.signal() }
            idling?.pause()
        }
    }

    private static func waitForWork(_ shared: Shared, _ lane: WorkLane, _ idling: WorkerIdling?) {
        let wakeup = shared.wakeup(of: lane)
        while let expiry = shared.queue.withLock({ $0.nextExpiry }) {
            let wait = Duration.nanoseconds(max(0, expiry.nanoseconds(since: .now)))
            if wakeup.wait(for: min(wait, .seconds(1))) { return }
            for work in shared.queue.withLock({ $0.removeExpired(now: .now) }) { work.fail(Failure.workExpired) }
        }
        while lane == .first, let stall = shared.queue.withLock({ $0.nextStall }) {
            let now = Instant.now
            if now >= stall || wakeup.wait(for: .nanoseconds(stall.nanoseconds(since: now))) { return }
        }
        if let idling {
            if wakeup.wait(for: idling.restAfter) { return }
            idling.rest()
        }
        wakeup.wait()
    }

    /// The next work that is still in time, and the time until which it gives way. Work that is too late fails.
    private static func next(
        _ shared: Shared, _ lane: WorkLane, _ wakeups: HeldWakeups
    ) -> (Work?, givesWayUntil: Instant?) {
        let (batch, hasDueAnswers, mustExpire) = shared.queue.withLock {
            ($0.take(now: .now, lane: lane), $0.hasDueAnswers, $0.nextExpiry != nil)
        }
        for work in batch.expired { work.fail(Failure.workExpired) }
        // Another worker takes over to look at the deadlines of the works that wait.
        if batch.next != nil && mustExpire { shared.wakeup(of: lane).signal() }
        if hasDueAnswers { giveDueAnswers(shared, wakeups) }
        return (batch.next, batch.givesWayUntil)
    }

    private static func giveDueAnswers(_ shared: Shared, _ wakeups: HeldWakeups) {
        // While others want the processors, a worker may lose its own one before it comes to the wake-ups.
        if shared.queue.withLock({ !$0.isShared }) { wakeups.begin() }
        while let answer = shared.queue.withLock({ $0.takeDueAnswer() }) { answer() }
        wakeups.end()
    }

    private static func give(_ answers: inout [HeldAnswers.Answer], _ wakeups: HeldWakeups) {
        wakeups.begin()
        for answer in answers { answer() }
        wakeups.end()
        answers.removeAll(keepingCapacity: true)
    }
}

/// Measures the calling thread's use of a processor from one work to the next.
private struct ThreadMeter {
    private var processorTime = OSThread.processorNanoseconds
    private var interruptions = OSThread.interruptionCount

    /// Measured from the end of the last work: one system call of each kind, not two; waiting takes no processor time.
    mutating func use(since start: Instant) -> ProcessorDemand.Use {
        let before = (processorTime, interruptions)
        (processorTime, interruptions) = (OSThread.processorNanoseconds, OSThread.interruptionCount)
        return ProcessorDemand.Use(
            nanoseconds: Instant.now.nanoseconds(since: start), processorNanoseconds: processorTime - before.0,
            interruptions: interruptions - before.1)
    }
}
