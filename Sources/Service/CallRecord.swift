import Base
import Rules
import Transport

/// The data of an ended call, for the logs. It borrows the request id, so it must be used at once.
struct CallRecord {
    /// The method's full name. All unknown methods share one name, because a client may make up any number of names.
    let method: String
    let isUnary: Bool
    let requestID: UnsafeRawBufferPointer
    let connectionID: UInt64
    let form: CallForm
    let caller: Caller?
    /// Nil if the method is about no tenant, or the call did not get as far.
    let tenantID: Text?
    /// Nil if the call succeeded.
    let failure: Failure?
    let receivedByteCount: Int
    let sentByteCount: Int
    let parent: TraceParent?
    /// The trace of a call that waited.
    let trace: CallTrace?

    static let unknownMethod = "_OTHER"

    var statusName: String { (failure?.code ?? .ok).name }

    /// Never appends secrets of a caller: only ids and numbers, no field of a message, no address.
    func append(to line: inout LogLine, nanoseconds: Int64) {
        line.append("request_id", utf8: requestID)
        line.append("connection", .text(String(connectionID, radix: 16)))
        line.append("protocol", .text(form.name))
        line.append("method", .text(method))
        if let tenantID { line.append("tenant", tenantID) }
        if let caller {
            line.append("caller", caller.id)
            line.append("role", .text(caller.role.name))
        }
        line.append("status", .text(statusName))
        if let failure { line.append("reason", .text(failure.reason)) }
        line.append("duration_micros", .integer(nanoseconds / 1_000))
        if let trace {
            line.append("queue_micros", .integer(trace.queued / 1_000))
            line.append("work_micros", .integer(trace.worked / 1_000))
            line.append("commit_micros", .integer(trace.committed / 1_000))
        }
        line.append("bytes_in", .integer(Int64(receivedByteCount)))
        line.append("bytes_out", .integer(Int64(sentByteCount)))
        if let parent { line.append("trace_id", parent.traceID) }
    }
}
