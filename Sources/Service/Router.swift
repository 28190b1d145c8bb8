public import Base
public import Identity
import Messages
import Reactor
import Rules
import Store
public import Transport
public import Wire

/// The one way of every call, whatever carries it: find the method, admit the caller, run the handler, and take the
/// outcome back, counted and logged.
public final class Router: Dispatcher {
    let service: ServiceContext
    let registry: Registry
    let gate: Gate
    let callerUse: CallerUse
    /// Calls of methods that there are not. One count for all: a client may make up any number of names.
    let unknownMethodCalls = Counter()
    private let failureLog: FailureLog

    public init(project: Project, health: HealthStatus, version: Text, log: Log) {
        self.service = ServiceContext(project: project, health: health, version: version, log: log)
        var registry = Registry()
        registerAll(&registry)
        self.registry = registry
        self.gate = Gate(service)
        self.callerUse = CallerUse(limits: project.limits)
        self.failureLog = FailureLog(log: log)
    }

    public func makeConnectionContext() -> AnyObject { ConnectionContext() }

    public func authenticate(_ authorization: Text, on connection: isolated Connection) {
        let context = connection.connectionContext
        context.helloAuthorization = authorization.bytes
        let caller = try? authorization.bytes.withUnsafeBytes { try gate.caller(authorization: $0, context: context) }
        // A credential that has too many connections is told so when it calls.
        if let caller { try? countConnection(connection, of: caller) }
    }

    public func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        answer(request, stream: stream, kind: kind, on: connection)
    }

    /// Answers a call, now or later. `request` is valid during this call only.
    func answer<Carrier: CallCarrier>(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on carrier: isolated Carrier
    ) {
        let context = carrier.connectionContext
        let requestID = RequestID.of(
            request.metadata.requestID, connection: carrier.id, stream: stream, context.requestIDScratch)
        let incoming = IncomingCall(request: request, stream: stream, kind: kind, requestID: requestID, start: .now)
        guard let method = registry.method(request.service, request.method, last: &context.lastMethod) else {
            unknownMethodCalls.add()
            return carrier.fail(stream: stream, .unknownMethod, metadata: incoming.metadata)
        }
        do {
            let caller = try admit(incoming, to: method, context, on: carrier)
            guard kind == method.kind else { throw Failure.wrongMethodShape }
            switch method.body {
            case .fast(let body):
                let exchange = ReadExchange(gate: gate, method: method.descriptor, caller: caller, context: context)
                try carrier.respond(stream: stream, metadata: incoming.metadata) {
                    try body(request.payload, exchange, &$0)
                }
                succeeded(method, start: incoming.start)
            case .waiting(let body):
                try begin(incoming, of: method, body, caller: caller, on: carrier)
            }
        } catch {
            failed(error, method, stream: stream, requestID: requestID, start: incoming.start, on: carrier)
        }
    }

    /// The caller, whose role the method takes; nil where it needs none.
    private func admit<Carrier: CallCarrier>(
        _ incoming: IncomingCall, to method: RegisteredMethod, _ context: ConnectionContext,
        on carrier: isolated Carrier
    ) throws -> Caller? {
        let role = method.descriptor.role
        if role == .unspecified { return nil }
        let caller = try gate.caller(authorization: incoming.request.metadata.authorization, context: context)
        try countConnection(carrier, of: caller)
        try caller.require(role)
        return caller
    }
}

// MARK: - Outcomes

extension Router {
    func succeeded(_ method: RegisteredMethod, start: Instant) {
        method.metrics.record(.ok, nanoseconds: Instant.now.nanoseconds(since: start))
    }

    func failed<Carrier: CallCarrier>(
        _ error: any Error, _ method: RegisteredMethod, stream: UInt32, requestID: UnsafeRawBufferPointer,
        start: Instant, on carrier: isolated Carrier
    ) {
        let failure = Failure(mapping: error)
        carrier.fail(stream: stream, failure, metadata: OutgoingMetadata(requestID: requestID))
        let now = Instant.now
        method.metrics.record(failure.code, nanoseconds: now.nanoseconds(since: start))
        failureLog.write(
            method.descriptor, failure, error, requestID: Text(validating: requestID) ?? .empty, start: start, now: now)
    }
}

extension Failure {
    static let unknownMethod = Failure(
        .unknownMethod, "There is no such service or method; reflection lists those there are.")

    /// For a client that speaks to a method as if it had another shape.
    fileprivate static let wrongMethodShape = Failure(
        .wrongMethodShape,
        "The request's flags do not fit the method: unary, server stream or bidirectional stream.")
}
