public import Base
public import Identity
import Messages
import Reactor
import Rules
import Store
import Synchronization
public import TLS
public import Transport
public import Wire

/// The one path of every call, whatever carries it: the router finds the method, admits the caller, runs the handler,
/// and returns the outcome, counted and logged.
public final class Router: Dispatcher {
    let service: ServiceContext
    let registry: Registry
    let gate: Gate
    let callerUse: CallerUse
    /// Calls of unknown methods. One count for all: a client may make up any number of names.
    let unknownMethodCalls = Counter()
    let failures: CallFailures
    let strangersQuestions: Mutex<QuestionRate>
    let callLog: CallLog
    private let failureLog: FailureLog
    /// The pages of the side port by their paths; set before anything is served.
    let pages = Mutex<HTTPServer.Routes>([:])

    public init(
        project: Project, health: HealthStatus, version: Text, calls: CallLog.Configuration = CallLog.Configuration(),
        log: Log
    ) {
        self.service = ServiceContext(project: project, health: health, version: version, log: log)
        var registry = Registry()
        registerAll(&registry)
        // Reflection under its first name, which most tools still use. The messages are the same, byte by byte.
        registry.alias(.serverReflectionServerReflectionInfo, service: "grpc.reflection.v1alpha.ServerReflection")
        self.registry = registry
        self.gate = Gate(service)
        self.callerUse = CallerUse(limits: project.limits)
        self.strangersQuestions = Mutex(
            QuestionRate(perSecond: project.limits.journal.strangersQuestionsPerSecond))
        self.failures = CallFailures(limits: project.limits)
        self.callLog = CallLog(calls, clock: project.clock, log: log)
        self.failureLog = FailureLog(log: log)
    }

    public func makeConnectionContext() -> AnyObject { ConnectionContext() }

    public func identified(by certificate: PeerCertificate, _ connection: isolated Connection) {
        connection.connectionContext.certificate = ClientCertificate(certificate)
        // A certificate that is mapped to a role is a credential by itself.
        present(.empty, on: connection)
    }

    public func authenticate(_ authorization: Text, on connection: isolated Connection) {
        connection.connectionContext.helloAuthorization = authorization.bytes
        present(authorization, on: connection)
    }

    /// Requests that came in together are answered from one snapshot. It begins after they came, so that it holds every
    /// change that was acknowledged before any of them was sent.
    public func batchBegins(on connection: isolated Connection) {
        connection.connectionContext.batchBegins(service.project.store)
    }

    public func batchEnded(on connection: isolated Connection) {
        connection.connectionContext.batchEnded(countingIn: service.tenantCalls)
    }

    public func present(_ authorization: Text, on connection: isolated Connection) {
        let context = connection.connectionContext
        let caller = try? authorization.bytes.withUnsafeBytes { try gate.caller(authorization: $0, context: context) }
        // A credential with too many connections is refused when it calls.
        if let caller { try? countConnection(connection, of: caller) }
    }

    public func kind(service: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer) -> StreamKind? {
        registry.place(of: service, method, last: .max).map { registry.all[$0].kind }
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
        let incoming = IncomingCall(
            request: request, stream: stream, kind: kind, requestID: requestID, connectionID: carrier.id,
            form: carrier.form, start: context.callBegins(),
            readPosition: isInCluster ? readPosition(for: request.metadata, context) : nil)
        context.forgetAdmittedTenant()
        guard let place = registry.place(of: request.service, request.method, last: context.lastMethod) else {
            unknownMethodCalls.add()
            carrier.fail(stream: stream, .unknownMethod, metadata: incoming.metadata)
            return callLog.ended(after: Instant.now.nanoseconds(since: incoming.start)) {
                incoming.record(of: nil, by: nil, tenantID: nil, failure: .unknownMethod, sentByteCount: 0)
            }
        }
        context.lastMethod = place
        registry.withMethod(at: place) { answer(incoming, of: $0, context, on: carrier) }
    }

    private func answer<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, _ context: ConnectionContext,
        on carrier: isolated Carrier
    ) {
        var caller: Caller?
        do {
            caller = try identify(incoming.request, for: method, context, on: carrier)
            try caller?.require(method.descriptor.role)
            guard incoming.kind == method.kind else { throw Failure.wrongMethodShape }
            switch method.body {
            case .fast(let body):
                if isInCluster {
                    if try waitsForPosition(incoming, of: method, caller: caller, on: carrier) { return }
                    try requireFresh(for: method.descriptor)
                }
                let sentByteCount = try answer(incoming, of: method, body, by: caller, context, on: carrier)
                ended(
                    incoming, of: method, by: caller, context, failure: nil, sentByteCount: sentByteCount, on: carrier)
            case .waiting(let body):
                try begin(incoming, of: method, body, caller: caller, on: carrier)
            }
        } catch {
            let refusal = answersAtEnd(incoming, of: method, caller: caller, refused: error, on: carrier)
            guard let refusal else { return }
            let refused = caller ?? (refusal as? RefusedCaller)?.caller
            let failure = fail(
                stream: incoming.stream, with: refusal, method, by: refused, requestID: incoming.requestID,
                start: incoming.start, on: carrier)
            ended(incoming, of: method, by: refused, context, failure: failure, sentByteCount: 0, on: carrier)
        }
    }

    /// Answers at once. Returns the size of the response message.
    private func answer<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, _ body: FastBody, by caller: Caller?,
        _ context: ConnectionContext, on carrier: isolated Carrier
    ) throws -> Int {
        var sentByteCount = 0
        try carrier.respond(stream: incoming.stream, metadata: incoming.metadata) {
            let start = $0.readableByteCount
            try body(
                incoming.request.payload, method.descriptor,
                ReadExchange(gate: gate, caller: caller, context: context), &$0)
            sentByteCount = $0.readableByteCount - start
        }
        return sentByteCount
    }

    /// The caller; nil if the method needs none. `RefusedCaller` for a valid credential that may not be used over this
    /// connection: `fail` notes it as it notes a call beyond a role.
    func identify<Carrier: CallCarrier>(
        _ request: RequestEnvelope, for method: RegisteredMethod, _ context: ConnectionContext,
        on carrier: isolated Carrier
    ) throws -> Caller? {
        if method.descriptor.role == .unspecified { return nil }
        let caller = try gate.caller(authorization: request.metadata.authorization, context: context)
        do throws(Failure) {
            try countConnection(carrier, of: caller)
        } catch {
            throw RefusedCaller(caller, error)
        }
        return caller
    }
}

extension ClientCertificate {
    /// Nil for a name that no mapping can have.
    fileprivate init?(_ certificate: PeerCertificate) {
        let name: CertificateIdentity.Name =
            switch certificate.name {
            case .uri(let uri): .uri(uri)
            case .dns(let dnsName): .dns(dnsName)
            }
        guard let identity = try? CertificateIdentity(name, issuerKeyHash: certificate.issuerKeyHash) else {
            return nil
        }
        self.init(identity: identity, expiresAt: Timestamp(seconds: certificate.expiresAt))
    }
}

// MARK: - Outcomes

extension Router {
    /// Tells the client and the logs why a call failed. `caller`: nil where none was found; a `RefusedCaller` has one.
    func fail<Carrier: CallCarrier>(
        stream: UInt32, with error: any Error, _ method: RegisteredMethod, by caller: Caller?,
        requestID: UnsafeRawBufferPointer, start: Instant, on carrier: isolated Carrier
    ) -> Failure {
        let failure = told(Failure(mapping: error))
        if let caller = caller ?? (error as? RefusedCaller)?.caller {
            note(failure, method.descriptor.fullName, by: caller, requestID: Text(validating: requestID) ?? .empty)
        }
        carrier.fail(stream: stream, failure, metadata: OutgoingMetadata(requestID: requestID))
        failureLog.write(
            method.descriptor, failure, error, requestID: Text(validating: requestID) ?? .empty, start: start,
            now: .now)
        return failure
    }

    /// Tells the event log of a call that its credential may not make.
    func note(
        _ failure: Failure, _ name: String, by caller: Caller, requestID: @autoclosure () -> Text
    ) {
        guard DeniedCalls.isDenial(failure) else { return }
        let requestID = requestID()
        let call = DeniedCalls.Call(by: caller, of: name, failure, requestID: requestID)
        service.project.callers.deniedCalls.note(call)
    }

    /// Counts and logs a call that ended in the turn in which it came in.
    private func ended<Carrier: CallCarrier>(
        _ incoming: IncomingCall, of method: RegisteredMethod, by caller: Caller?, _ context: ConnectionContext,
        failure: Failure?, sentByteCount: Int, on carrier: isolated Carrier
    ) {
        let nanoseconds = context.callEnds().nanoseconds(since: incoming.start)
        count(failure, of: method, nanoseconds: nanoseconds, on: carrier.loop)
        callLog.ended(after: nanoseconds) {
            incoming.record(
                of: method, by: caller, tenantID: context.admittedTenantID, failure: failure,
                sentByteCount: sentByteCount)
        }
    }

    private func count(
        _ failure: Failure?, of method: RegisteredMethod, nanoseconds: Int64, on loop: EventLoop
    ) {
        method.metrics.record(failure?.code ?? .ok, nanoseconds: nanoseconds, on: loop)
        if let failure { failures.count(failure, of: method.descriptor.fullName) }
    }

    /// Counts and logs a call that outlived the turn in which it came in.
    func ended(_ exchange: Exchange, failure: Failure?, on loop: EventLoop) {
        let nanoseconds = Instant.now.nanoseconds(since: exchange.start)
        count(failure, of: exchange.method, nanoseconds: nanoseconds, on: loop)
        exchange.requestID.bytes.withUnsafeBytes { requestID in
            callLog.ended(after: nanoseconds) { exchange.record(requestID, failure: failure) }
        }
    }
}

extension Failure {
    static let unknownMethod = Failure(
        .unknownMethod, "There is no such service or method; reflection lists those there are.")

    /// For a client that opens a method as if it had another shape.
    fileprivate static let wrongMethodShape = Failure(
        .wrongMethodShape,
        "The request's flags do not fit the method: unary, server stream or bidirectional stream.")
}
