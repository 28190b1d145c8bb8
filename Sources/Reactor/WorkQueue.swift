import Base

/// The rules of a worker pool without its threads: bounds, fairness by time, memory, deadlines, estimates.
struct WorkQueue: Sendable {
    struct Limits: Sendable {
        var workers: Int
        var queueMax: Int
        var queueMaxPerTenant: Int
        /// The most memory of all running work together, in bytes.
        var memoryMax = Int.max
        /// While work waits, the answers of this many works are given together at most.
        var answersTogetherMax = 1
        /// If set, the tenants share the workers as `WorkerShares` says, each with this many at most, and pay for the
        /// time that their works have a worker instead of the processor time.
        var workersPerTenantMax: Int?
    }

    /// A work that gave its place to another one, and what to tell its caller.
    struct Displaced {
        let work: Work
        let failure: Failure
    }

    /// The result of `take`: work to run, and work to fail with `Failure.workExpired`.
    struct Batch {
        var next: Work?
        /// The time until which the work gives way to other threads. Nil: it does not.
        var givesWayUntil: Instant?
        var expired: [Work] = []
    }

    private let name: String
    private let limits: Limits
    private var queue = FairQueue<Work>(sharesBySource: true)
    private var admission: WorkAdmission
    /// Nil without `Limits.workersPerTenantMax`.
    private var shares: WorkerShares?
    /// Workers that came for work and found none that may begin beside the running works.
    private var turnedAwayCount = 0
    private(set) var counts = WorkerPoolCounts()
    private(set) var isClosed = false
    private var stalls = StallWatch()
    private var demand = ProcessorDemand()
    private var answers = HeldAnswers()
    /// Moving average of one work's run time. Each new time counts an eighth.
    private var averageNanoseconds: Int64 = 0
    /// The same average of short work only: the time of a long work says nothing about how long short works wait.
    private var averageShortNanoseconds: Int64 = 0
    /// No queued deadline is earlier than this. It saves a search if a full queue holds no expired work.
    private var earliestDeadline = Instant.distantFuture

    init(name: String, limits: Limits) {
        self.name = name
        self.limits = limits
        self.admission = WorkAdmission(workers: limits.workers, memoryMax: limits.memoryMax)
        self.shares = limits.workersPerTenantMax.map { WorkerShares(workers: limits.workers, perTenant: $0) }
    }

    /// Queues `work`, or throws the reason against it. `expired` gets works that left because their deadline passed,
    /// and the result is the work that left to make room; the caller fails them.
    @discardableResult
    mutating func submit(_ work: Work, now: Instant, expired: inout [Work]) throws(Failure) -> Displaced? {
        guard !isClosed else { throw .poolClosed }
        guard now < work.deadline else {
            counts.expired += 1
            throw .workExpired
        }
        if isFull(for: work.tenant) && earliestDeadline <= now { expired = removeExpired(now: now) }
        var displaced: Work?
        if isFull(for: work.tenant) {
            counts.refused += 1
            displaced = workToDisplace(for: work)
            guard displaced != nil else { throw overloaded }
        }
        queue.append(work, tenant: work.tenant, source: work.source, cost: work.cost.nanoseconds)
        updateCounts()
        earliestDeadline = min(earliestDeadline, work.deadline)
        return displaced.map { Displaced(work: $0, failure: overloaded) }
    }

    /// Takes out the last work of whoever has most works waiting, so that `work`, of somebody who has fewer, finds a
    /// place: of the source with most works if the tenant has all its places, otherwise of the tenant with most. Nil if
    /// the two would only change places. The server's own work keeps its places.
    private mutating func workToDisplace(for work: Work) -> Work? {
        let displaced: Work?
        if isWithoutPlace(work.tenant) {
            let countMin = queue.count(of: work.tenant, source: work.source) + 2
            displaced = queue.removeLast(ofLongestSourceIn: work.tenant, countMin: countMin)
        } else {
            let countMin = queue.count(of: work.tenant) + 2
            let longest = queue.longestTenant(except: WorkLine.server, countMin: countMin)
            displaced = longest.flatMap { queue.removeLast(ofLongestSourceIn: $0, countMin: 1) }
        }
        if let displaced { admission.left(displaced) }
        return displaced
    }

    private var overloaded: Failure {
        Failure(.serverOverloaded, "too much \(name) work is waiting; try again later", retryAfter: retryAfter)
    }

    /// The next work of `lane` that is still in time and may begin beside the running works. It counts as running.
    mutating func take(now: Instant, lane: WorkLane = .all) -> Batch {
        if lane == .first, let stalled = takeStalled(now: now) { return Batch(next: stalled) }
        var batch = Batch()
        while let (work, passedOver) = popFirst(now: now, lane) {
            guard now < work.deadline else {
                batch.expired.append(work)
                admission.left(work)
                continue
            }
            admission.began(work, passedOver: passedOver)
            shares?.began(ObjectIdentifier(work), of: work.tenant, isPatient: work.isPatient, now: now)
            queue.began(tenant: work.tenant, cost: work.cost.nanoseconds)
            batch.next = work
            batch.givesWayUntil = demand.givingWay(work, lane, now: now)
            counts.running += 1
            if lane == .short { stalls.began(work, now: now) }
            answers.releaseIfTheyCannotWait(for: work, now: now)
            break
        }
        if batch.next == nil && queue.count > 0 { turnedAwayCount += 1 }
        counts.expired += UInt64(batch.expired.count)
        updateCounts()
        return batch
    }

    /// The first work in turn that may begin or has expired. `passedOver` is the first before it that lacks memory.
    private mutating func popFirst(now: Instant, _ lane: WorkLane) -> (work: Work, passedOver: Work?)? {
        let admission = admission
        let shares = shares?.admission(now: now)
        var passedOver: Work?
        func mayBegin(_ work: Work, runningCount: Int) -> Bool {
            guard lane.takes(work) else {
                // The work waits for the same memory as the works that the lane takes.
                if passedOver == nil && work.deadline > now && admission.lacksMemoryOnly(work) { passedOver = work }
                return false
            }
            if work.deadline <= now { return true }
            if let shares, !shares.admits(work.tenant, isPatient: work.isPatient, runningCount: runningCount) {
                return false
            }
            if admission.admits(work, mayBeHeldUp: lane != .first) { return true }
            if passedOver == nil && !admission.hasMemory(for: work) { passedOver = work }
            return false
        }
        let fair = queue.popFirst {
            mayBegin($0, runningCount: $1)
        } from: {
            admission.isWithinShare(runningCount: $0)
        }
        guard let work = fair ?? queue.popFirst(where: { mayBegin($0, runningCount: $1) }) else { return nil }
        return (work, passedOver)
    }

    /// A work that stalled on a spare worker. It is begun once more if there is memory for that.
    private mutating func takeStalled(now: Instant) -> Work? {
        guard let work = stalls.takeStalled(now: now) else { return nil }
        guard now < work.deadline else { return nil }
        guard admission.admits(work, mayBeHeldUp: false) else {
            stalls.began(work, now: now)
            return nil
        }
        admission.beganAgain(work)
        queue.began(tenant: work.tenant, cost: work.cost.nanoseconds)
        answers.releaseIfTheyCannotWait(for: work, now: now)
        counts.running += 1
        counts.repeated += 1
        updateCounts()
        return work
    }

    /// When the first worker should look for a stalled work.
    var nextStall: Instant? { stalls.next }

    /// Returns how many workers to call again, because work for which they came in vain may begin now.
    ///
    /// `lane` is that of the worker that did the work. The processor time is charged to the work's tenant.
    @discardableResult
    mutating func finished(_ work: Work, lane: WorkLane = .all, use: ProcessorDemand.Use) -> Int {
        Self.move(&averageNanoseconds, use.nanoseconds)
        if work.isShort { Self.move(&averageShortNanoseconds, use.nanoseconds) }
        stalls.ended(work)
        demand.ended(work, lane: lane, use: use)
        admission.ended(work)
        shares?.ended(ObjectIdentifier(work), nanoseconds: use.nanoseconds)
        queue.ended(
            tenant: work.tenant, cost: work.cost.nanoseconds,
            actual: shares == nil ? use.processorNanoseconds : use.nanoseconds)
        counts.running -= 1
        counts.done += 1
        updateCounts()
        defer { turnedAwayCount = 0 }
        // More calls than works would only wake workers for nothing, and each of them would count as turned away.
        return min(turnedAwayCount, queue.count)
    }

    /// Holds the answer of `work`, which has ended, or releases it with those that are held.
    ///
    /// The steps after a hash cost half a millisecond, because the hash has displaced everything from the caches, and
    /// they cost a commit. Sign-ins that take them together share both. Answers wait only while another work runs, and
    /// while the machine is not crowded: at most as many as works now wait for each worker. Where others want the
    /// processors, two answers at once are enough: more would hold them up. What a worker begins next releases answers
    /// that cannot wait for it.
    mutating func group(_ answer: @escaping HeldAnswers.Answer, of work: Work) {
        answers.hold(answer, of: work)
        let groupMax = min(limits.answersTogetherMax, demand.isShared ? 2 : .max, 1 + queue.count / limits.workers)
        if counts.running == 0 || demand.isCrowded || answers.count >= groupMax { answers.release() }
    }

    /// Makes the held answers due. A worker that finds no more work calls it.
    mutating func releaseAnswers() { answers.release() }

    /// Whether other threads want the processors, too.
    var isShared: Bool { demand.isShared }

    var hasDueAnswers: Bool { answers.hasDue }

    /// The next answer to give, for any worker.
    mutating func takeDueAnswer() -> HeldAnswers.Answer? { answers.takeDue() }

    /// Takes `work` out if it still waits.
    mutating func cancel(_ work: Work) {
        guard queue.remove(tenant: work.tenant, where: { $0 === work }) != nil else { return }
        admission.left(work)
        counts.cancelled += 1
        updateCounts()
    }

    /// Refuses all work from now on and returns the waiting work, for the caller to fail.
    mutating func close() -> [Work] {
        isClosed = true
        counts.queued = 0
        return queue.removeAll { _ in true }
    }

    /// When the work ahead should be done, in milliseconds rounded up, and not below a second: a client that comes back
    /// sooner only adds to the load.
    private var retryAfter: Duration {
        let nanoseconds = nanoseconds(of: queue.count + counts.running, each: averageNanoseconds)
        return .milliseconds(max(1_000, nanoseconds / 1_000_000 + 1))
    }

    /// How long the queued work takes, if it is short.
    var backlog: Duration { .nanoseconds(nanoseconds(of: queue.count, each: averageShortNanoseconds)) }

    /// The time that all workers together need for `count` works.
    private func nanoseconds(of count: Int, each nanoseconds: Int64) -> Int64 {
        let (sum, overflow) = nanoseconds.multipliedReportingOverflow(by: Int64(count))
        return overflow ? Int64.max : sum / Int64(limits.workers)
    }

    private static func move(_ average: inout Int64, _ nanoseconds: Int64) {
        average = average == 0 ? nanoseconds : average + (nanoseconds - average) / 8
    }

    private mutating func updateCounts() {
        counts.queued = queue.count
        counts.memoryByteCount = admission.memoryByteCount
        counts.memoryPeakByteCount = admission.memoryPeak
    }

    private func isFull(for tenant: Text) -> Bool {
        queue.count >= limits.queueMax || isWithoutPlace(tenant)
    }

    /// Whether the tenant has all the places that it may have.
    private func isWithoutPlace(_ tenant: Text) -> Bool {
        let waitingCount = queue.count(of: tenant)
        if waitingCount >= limits.queueMaxPerTenant { return true }
        // The places of the queue are shared as the workers are, so that those who come late find one.
        return shares != nil && waitingCount > 0 && 2 * waitingCount >= limits.queueMax - queue.count
    }

    /// When an idle worker should take out works whose deadline has passed. Nil: nothing waits, or the works that wait
    /// are begun as soon as a worker is idle.
    var nextExpiry: Instant? { shares != nil && queue.count > 0 ? earliestDeadline : nil }

    /// Takes out the works whose deadline has passed; the caller fails them.
    mutating func removeExpired(now: Instant) -> [Work] {
        guard earliestDeadline <= now else { return [] }
        var earliest = Instant.distantFuture
        let expired = queue.removeAll { work in
            if work.deadline <= now { return true }
            earliest = min(earliest, work.deadline)
            return false
        }
        for work in expired { admission.left(work) }
        earliestDeadline = earliest
        counts.expired += UInt64(expired.count)
        updateCounts()
        return expired
    }
}
