import Base

/// A piece of blocking work and the way to answer its caller.
///
/// Either `execute` or `fail` is called. `execute` may be called twice, on two threads: the first answer counts.
final class Work: Sendable {
    let tenant: Text
    /// Whom it is for, among those who share the tenant's turns (`SourceOrder`).
    let source: Text
    let deadline: Instant
    /// Whether it takes less than a millisecond, so that its answer may wait for that of the next work.
    let isShort: Bool
    /// Whether nobody waits for it, and it may take long (`WorkerShares`).
    let isPatient: Bool
    let cost: WorkCost
    /// Does the work. Calling the result answers the caller.
    let execute: @Sendable () -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void

    /// Whether other work would have to wait for it for too long.
    var isLong: Bool { cost.time > WorkAdmission.longWork }

    init(
        tenant: Text, source: Text = .empty, deadline: Instant, isShort: Bool = false, isPatient: Bool = false,
        cost: WorkCost = .none, execute: @escaping @Sendable () -> @Sendable () -> Void,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.tenant = tenant
        self.source = source
        self.deadline = deadline
        self.isShort = isShort
        self.isPatient = isPatient
        self.cost = cost
        self.execute = execute
        self.fail = fail
    }

    /// Work whose result completes the promise.
    convenience init<T: Sendable>(
        tenant: Text, source: Text, deadline: Instant, isShort: Bool, isPatient: Bool, cost: WorkCost,
        _ work: @escaping @Sendable () throws -> T, _ promise: Promise<T>
    ) {
        self.init(
            tenant: tenant, source: source, deadline: deadline, isShort: isShort, isPatient: isPatient, cost: cost,
            execute: {
                let result = Result { try work() }
                return { promise.complete(with: result) }
            },
            fail: { promise.fail($0) })
    }
}

/// The figures of a pool at one moment.
public struct WorkerPoolCounts: Sendable, Equatable {
    public var queued = 0
    public var running = 0
    /// Work that ran to its end, with a result or an error.
    public var done: UInt64 = 0
    /// Work that was refused because a queue was full, at once or when it gave its place to another work.
    public var refused: UInt64 = 0
    /// Work that never ran because its deadline passed before its turn came.
    public var expired: UInt64 = 0
    /// Work that never ran because the waiting task was cancelled.
    public var cancelled: UInt64 = 0
    /// Work that the first worker began once more, because the worker that had begun it got no processor.
    public var repeated: UInt64 = 0
    /// The memory that the running work may hold, and the highest value of that so far.
    public var memoryByteCount = 0
    public var memoryPeakByteCount = 0
}

extension Failure {
    static let workExpired = Failure(.deadlineExceeded, "the deadline passed before the work began")
    static let poolClosed = Failure(.serverShuttingDown, "the server is shutting down")
}
