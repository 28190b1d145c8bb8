import Base
import Identity
import Rules
import Store
import Transport
import Wire

/// A request as it came in. Its data is valid only during the turn in which it came in.
struct IncomingCall {
    let request: RequestEnvelope
    let stream: UInt32
    let kind: StreamKind
    /// The client's id, or one that was made for the request.
    let requestID: UnsafeRawBufferPointer
    let connectionID: UInt64
    let form: CallForm
    let start: Instant
    /// The place in the journal that all reads for this call are known to hold. Nil where the call names none, and
    /// outside of a cluster.
    let readPosition: JournalPosition?

    var metadata: OutgoingMetadata { OutgoingMetadata(requestID: requestID) }
    var parent: TraceParent? { request.metadata.traceparent.flatMap { TraceParent($0) } }

    /// For the logs, once the call ended. `method` is nil for an unknown method.
    func record(
        of method: RegisteredMethod?, by caller: Caller?, tenantID: Text?, failure: Failure?, sentByteCount: Int
    ) -> CallRecord {
        CallRecord(
            method: method?.descriptor.fullName ?? CallRecord.unknownMethod, isUnary: kind == .unary,
            requestID: requestID, connectionID: connectionID, form: form, caller: caller, tenantID: tenantID,
            failure: failure,
            receivedByteCount: request.payload.count, sentByteCount: sentByteCount, parent: parent, trace: nil)
    }
}

/// A call that outlives the turn in which it came in: the data to answer it, to count it and to log it.
struct Exchange: Sendable {
    let method: RegisteredMethod
    /// Nil only for methods that need no credential, and until it is known.
    var caller: Caller?
    let stream: UInt32
    let requestID: Text
    let connectionID: UInt64
    let form: CallForm
    let requestByteCount: Int
    let start: Instant
    /// Nil if no log may show it and the client named no trace.
    let trace: CallTrace?
    /// `distantFuture` for a stream whose client named no deadline: it lives until somebody ends it.
    let deadline: Instant

    init(
        _ incoming: IncomingCall, of method: RegisteredMethod, caller: Caller?, timeoutMax: Duration, isTraced: Bool
    ) {
        self.method = method
        self.caller = caller
        self.stream = incoming.stream
        self.requestID = Text(validating: incoming.requestID) ?? .empty
        self.connectionID = incoming.connectionID
        self.form = incoming.form
        self.requestByteCount = incoming.request.payload.count
        self.start = incoming.start
        let parent = incoming.parent
        self.trace = isTraced || parent != nil ? CallTrace(parent: parent) : nil
        self.deadline = Self.deadline(incoming, of: method, timeoutMax: timeoutMax)
    }

    /// The client's deadline, or the method's own; never beyond the server's maximum, except for streams.
    private static func deadline(
        _ incoming: IncomingCall, of method: RegisteredMethod, timeoutMax: Duration
    ) -> Instant {
        let start = incoming.start
        let timeout = incoming.request.timeoutNanoseconds
        let wanted = timeout > 0 ? start.advanced(byNanoseconds: timeout) : nil
        guard method.kind == .unary else { return wanted ?? .distantFuture }
        return min(
            start.advanced(by: timeoutMax),
            wanted ?? start.advanced(by: .milliseconds(method.descriptor.timeoutMillis)))
    }

    /// For the logs, once the call ended.
    func record(_ requestID: UnsafeRawBufferPointer, failure: Failure?) -> CallRecord {
        CallRecord(
            method: method.descriptor.fullName, isUnary: method.kind == .unary, requestID: requestID,
            connectionID: connectionID, form: form, caller: caller, tenantID: trace?.tenantID, failure: failure,
            receivedByteCount: requestByteCount + (trace?.receivedByteCount ?? 0),
            sentByteCount: trace?.sentByteCount ?? 0, parent: trace?.parent, trace: trace)
    }

    /// Borrows the request id for an answer, and the position in the journal where there is one.
    func withMetadata<Result>(
        position: Text? = nil, _ body: (OutgoingMetadata) throws -> Result
    ) rethrows -> Result {
        try requestID.bytes.withUnsafeBytes { requestID in
            guard let position else { return try body(OutgoingMetadata(requestID: requestID)) }
            return try position.bytes.withUnsafeBytes {
                try body(OutgoingMetadata(requestID: requestID, position: $0))
            }
        }
    }
}
