import Synchronization

/// The measurements of one call: where its time goes, how many bytes its messages have, and which trace it belongs to.
/// Any thread may use it.
///
/// A call has no `CallTrace` if there is no log of calls and the call has no `traceparent`.
public final class CallTrace: Sendable {
    /// The trace of the call that this task works for.
    @TaskLocal public static var current: CallTrace?

    public let parent: TraceParent?
    private let tenant = Mutex<Text?>(nil)
    private let queuedNanoseconds = Atomic<Int64>(0)
    private let workedNanoseconds = Atomic<Int64>(0)
    private let committedNanoseconds = Atomic<Int64>(0)
    private let receivedBytes = Atomic<Int>(0)
    private let sentBytes = Atomic<Int>(0)

    public init(parent: TraceParent?) { self.parent = parent }

    /// The tenant, once it is known that the caller may ask for it.
    public var tenantID: Text? { tenant.withLock { $0 } }
    public func note(tenantID: Text?) { tenant.withLock { $0 = tenantID } }

    /// How long the call waited for its turn: for a page, and in the queues of the pools.
    public var queued: Int64 { queuedNanoseconds.load(ordering: .relaxed) }
    public func add(queuedNanoseconds amount: Int64) { queuedNanoseconds.add(max(0, amount), ordering: .relaxed) }

    /// How long pools worked for the call: hashes, signatures, the answers of other servers.
    public var worked: Int64 { workedNanoseconds.load(ordering: .relaxed) }
    public func add(workedNanoseconds amount: Int64) { workedNanoseconds.add(max(0, amount), ordering: .relaxed) }

    /// How long the call waited for its changes to be on the disk.
    public var committed: Int64 { committedNanoseconds.load(ordering: .relaxed) }
    public func add(committedNanoseconds amount: Int64) {
        committedNanoseconds.add(max(0, amount), ordering: .relaxed)
    }

    /// The bytes of the messages, without the framing around them.
    public var receivedByteCount: Int { receivedBytes.load(ordering: .relaxed) }
    public func add(receivedByteCount count: Int) { receivedBytes.add(count, ordering: .relaxed) }
    public var sentByteCount: Int { sentBytes.load(ordering: .relaxed) }
    public func add(sentByteCount count: Int) { sentBytes.add(count, ordering: .relaxed) }
}
