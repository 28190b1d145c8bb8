public import Base
import Synchronization

/// Counts what the writes of one call added to the store, whatever code made them on the call's behalf, and says whose
/// they are.
///
/// A task-local value: every `Store.write` of the call's task and its children counts here, so that no handler can
/// forget to. Written by the writer's thread at the commit, before the write is answered.
public final class WriteMeter: Sendable {
    @TaskLocal public static var current: WriteMeter?

    private let bytes = Atomic<Int64>(0)
    private let changes = Atomic<Int64>(0)

    /// The end of the call. A write that waited longer for the journal of a cluster is not made.
    let deadline: Instant

    /// The tenant that the call is about, or whose caller makes it. The call's writes wait in this tenant's line.
    let tenant: Text

    /// The "tenant" of the server's own writes, and that of calls about no tenant by callers of none. No tenant has
    /// such an id; that of the default pool is empty.
    public static let server = WorkLine.server
    public static let project: Text = "(project)"

    public init(tenant: Text = WriteMeter.server, deadline: Instant = .distantFuture) {
        (self.tenant, self.deadline) = (tenant, deadline)
    }

    /// The bytes that committed writes added to tenants' rows, less the bytes that they removed.
    public var byteCount: Int64 { bytes.load(ordering: .relaxed) }
    /// How many writes changed something.
    public var changeCount: Int64 { changes.load(ordering: .relaxed) }

    func add(byteCount: Int64) {
        bytes.add(byteCount, ordering: .relaxed)
        changes.add(1, ordering: .relaxed)
    }
}
