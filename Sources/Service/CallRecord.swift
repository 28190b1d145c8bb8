import Base
import Rules
import Transport

/// What is known of a call that ended, for the logs. Borrows the request id: used at once.
struct CallRecord {
    /// Its full name. One for all that there are not: a client may make up any number of names.
    let method: String
    let isUnary: Bool
    let requestID: UnsafeRawBufferPointer
    let connectionID: UInt64
    let form: CallForm
    let caller: Caller?
    /// Nil where the method is about no tenant, or the call did not get as far.
    let tenantID: Text?
    /// Nil when it went well.
    let failure: Failure?
    let receivedByteCount: Int
    let sentByteCount: Int
    let parent: TraceParent?
    /// Of a call that waited.
    let trace: CallTrace?

    static let unknownMethod = "_OTHER"

    var statusName: String { (failure?.code ?? .ok).name }

    /// Never what a caller must keep: ids and numbers, no field of a message, no address.
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
