import Base
import Identity
import Rules
import Wire

/// A request as it came in. Everything in it is valid during the turn it came in only.
struct IncomingCall {
    let request: RequestEnvelope
    let stream: UInt32
    let kind: StreamKind
    /// The client's, or one that was made for it.
    let requestID: UnsafeRawBufferPointer
    let start: Instant

    var metadata: OutgoingMetadata { OutgoingMetadata(requestID: requestID) }
}

/// A call that outlives the turn it came in: what it takes to answer it, to count it and to log it.
struct Exchange: Sendable {
    let method: RegisteredMethod
    /// Nil only for methods that need no credential.
    let caller: Caller?
    let stream: UInt32
    let requestID: Text
    let start: Instant
    /// `distantFuture` for a stream whose client named none: it lives until somebody ends it.
    let deadline: Instant

    init(_ incoming: IncomingCall, of method: RegisteredMethod, caller: Caller?, limits: Limits) {
        self.method = method
        self.caller = caller
        self.stream = incoming.stream
        self.requestID = Text(validating: incoming.requestID) ?? .empty
        self.start = incoming.start
        self.deadline = Self.deadline(incoming, of: method, limits: limits)
    }

    /// The client's, or the method's own; never beyond the server's maximum, but for streams.
    private static func deadline(_ incoming: IncomingCall, of method: RegisteredMethod, limits: Limits) -> Instant {
        let start = incoming.start
        let timeout = incoming.request.timeoutNanoseconds
        let wanted = timeout > 0 ? start.advanced(byNanoseconds: timeout) : nil
        guard method.kind == .unary else { return wanted ?? .distantFuture }
        return min(
            start.advanced(by: limits.requestTimeoutMax),
            wanted ?? start.advanced(by: .milliseconds(method.descriptor.timeoutMillis)))
    }

    /// Borrows the request id for an answer.
    func withMetadata<Result>(_ body: (OutgoingMetadata) throws -> Result) rethrows -> Result {
        try requestID.bytes.withUnsafeBytes { try body(OutgoingMetadata(requestID: $0)) }
    }
}
