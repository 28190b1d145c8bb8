import Base

/// A piece of blocking work and the way to answer its caller.
///
/// Either `execute` is called or `fail`. `execute` may be called twice, on two threads: the first answer counts.
final class Work: Sendable {
    let tenant: Text
    let deadline: Instant
    /// Takes less than a millisecond: its answer may wait for that of the next one.
    let isShort: Bool
    let cost: WorkCost
    /// Does the work. Calling the result answers the caller.
    let execute: @Sendable () -> @Sendable () -> Void
    let fail: @Sendable (any Error) -> Void

    /// Other works may have to wait for it longer than they can.
    var isLong: Bool { cost.time > WorkAdmission.longWork }

    init(
        tenant: Text, deadline: Instant, isShort: Bool = false, cost: WorkCost = .none,
        execute: @escaping @Sendable () -> @Sendable () -> Void, fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.tenant = tenant
        self.deadline = deadline
        self.isShort = isShort
        self.cost = cost
        self.execute = execute
        self.fail = fail
    }
}

/// The figures of a pool at one moment.
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
    /// Begun once more by the first worker: the one that had begun it got no processor.
    public var repeated: UInt64 = 0
    /// The memory that the running work may hold, and the most that it ever held at a time.
    public var memoryByteCount = 0
    public var memoryPeakByteCount = 0
}
