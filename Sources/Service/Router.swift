public import Base
public import Identity
import Messages
import Reactor
import Store
public import Transport
public import Wire

/// Finds the method of each request, lets it pass the gate and runs its handler; then counts and logs what became of
/// it.
public final class Router: Dispatcher {
    let context: ServiceContext
    let registry: Registry
    let gate: Gate
    let callerUse: CallerUse
    private let failureLog: FailureLog

    public init(project: Project, health: HealthStatus, version: Text, log: Log) {
        self.context = ServiceContext(project: project, health: health, version: version, log: log)
        var registry = Registry()
        registerAll(&registry)
        self.registry = registry
        self.gate = Gate(project: project)
        self.callerUse = CallerUse(limits: project.limits)
        self.failureLog = FailureLog(log: log)
    }

    public func makeConnectionContext() -> AnyObject { ConnectionContext() }

    public func authenticate(_ authorization: Text, on connection: isolated Connection) {
        let state = Self.state(of: connection)
        state.helloAuthorization = authorization.bytes
        let caller = try? authorization.bytes.withUnsafeBytes { try gate.caller(authorization: $0, context: state) }
        // A credential that has too many connections is told so when it calls.
        if let caller { try? countConnection(connection, of: caller) }
    }

    public func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        let state = Self.state(of: connection)
        let requestID = RequestID.of(
            request.metadata.requestID, connection: connection.id, stream: stream, state.requestIDScratch)
        let start = Instant.now
        guard let method = method(request, state) else {
            connection.fail(stream: stream, .unknownMethod, metadata: OutgoingMetadata(requestID: requestID))
            return
        }
        do {
            let caller = try admit(method, request, connection)
            switch method.body {
            case .fast(let body):
                try Self.expect(.unary, kind)
                let exchange = FastExchange(
                    router: self, method: method, caller: caller, payload: request.payload,
                    stream: stream, requestID: requestID, start: start,
                    timeoutNanoseconds: request.timeoutNanoseconds)
                try body(exchange, connection)
            case .page(let prepare):
                try Self.expect(.unary, kind)
                let prepared = try prepare(request.payload, context.project.limits)
                answer(prepared, method, caller, request, stream: stream, requestID, start: start, on: connection)
            case .slow(let prepare):
                try Self.expect(.unary, kind)
                let prepared = try prepare(request.payload, context.project.limits)
                try run(
                    prepared, method, caller, request, stream: stream, requestID: requestID, start: start,
                    on: connection)
            case .serverStream(let prepare):
                try Self.expect(.remoteClosed, kind)
                let prepared = try prepare(request.payload, context.project.limits)
                try run(prepared, method, caller, request, kind, stream, requestID, start, connection)
            case .bidirectional(let prepare):
                try Self.expect(.remoteOpen, kind)
                guard !request.payload.isEmpty else {
                    return try awaitFirst(prepare, method, caller, request, stream, requestID, start, connection)
                }
                let prepared = try prepare(request.payload, context.project.limits)
                try run(prepared, method, caller, request, kind, stream, requestID, start, connection)
            }
        } catch {
            let failure = Failure(mapping: error)
            connection.fail(stream: stream, failure, metadata: OutgoingMetadata(requestID: requestID))
            finished(method, failure, error, requestID: Text(validating: requestID), start: start)
        }
    }

    private func method(_ request: RequestEnvelope, _ state: ConnectionContext) -> RegisteredMethod? {
        if let last = state.lastMethod, last.matches(request.service, request.method) { return last }
        state.lastMethod = registry.method(request.service, request.method)
        return state.lastMethod
    }

    private func admit(
        _ method: RegisteredMethod, _ request: RequestEnvelope, _ connection: isolated Connection
    ) throws -> Caller? {
        let role = method.descriptor.role
        if role == .unspecified { return nil }
        let caller = try gate.caller(
            authorization: request.metadata.authorization, context: Self.state(of: connection))
        try countConnection(connection, of: caller)
        try caller.require(role)
        return caller
    }

    /// A client that speaks to a method as if it had another shape.
    private static func expect(_ expected: StreamKind, _ kind: StreamKind) throws(Failure) {
        guard kind == expected else {
            throw Failure(
                .unimplemented, "WRONG_METHOD_SHAPE",
                "The request's flags do not fit the method: unary, server stream or bidirectional stream.")
        }
    }

    static func state(of connection: isolated Connection) -> ConnectionContext {
        unsafeDowncast(connection.context, to: ConnectionContext.self)
    }
}

// MARK: - Calls that wait

extension Router {
    private func call(
        _ method: RegisteredMethod, _ caller: Caller?, requestedTenantID: Text?, requestID: UnsafeRawBufferPointer,
        deadline: Instant, _ connection: isolated Connection
    ) throws -> Call {
        if deadline <= .now { throw Failure.deadlinePassedBefore }
        let (settings, namedTenantID) = try context.project.store.read { transaction in
            try gate.tenant(
                requested: requestedTenantID, caller: caller, rule: method.descriptor,
                context: Self.state(of: connection), in: transaction)
        }
        return Call(
            service: context, method: method, caller: caller, settings: settings,
            namedTenantID: namedTenantID, requestID: Text(validating: requestID) ?? .empty,
            peerAddress: connection.peerAddress, deadline: deadline)
    }

    private func run(
        _ prepared: PreparedCall, _ method: RegisteredMethod, _ caller: Caller?, _ request: RequestEnvelope,
        stream: UInt32, requestID: UnsafeRawBufferPointer, start: Instant, on connection: isolated Connection
    ) throws {
        let deadline = deadline(method, request.timeoutNanoseconds, start: start)
        var admitted = try call(
            method, caller, requestedTenantID: prepared.requestedTenantID, requestID: requestID, deadline: deadline,
            connection)
        try admitted.admitChange(request, prepared.endUser)
        let call = admitted
        connection.run(
            stream: stream, kind: .unary, deadline: deadline, requestByteCount: request.payload.count
        ) { [self] connection in
            do {
                let response = try await call.charging(prepared.purpose) { try await prepared.run(call) }
                call.requestID.bytes.withUnsafeBytes { requestID in
                    connection.respond(stream: stream, metadata: OutgoingMetadata(requestID: requestID)) {
                        $0.append(contentsOf: response)
                    }
                }
                method.metrics.record(.ok, nanoseconds: Instant.now.nanoseconds(since: start))
            } catch {
                fail(error, method, call.requestID, stream: stream, start: start, on: connection)
            }
        }
    }

    private func run(
        _ prepared: PreparedStream, _ method: RegisteredMethod, _ caller: Caller?, _ request: RequestEnvelope,
        _ kind: StreamKind, _ stream: UInt32, _ requestID: UnsafeRawBufferPointer, _ start: Instant,
        _ connection: isolated Connection
    ) throws {
        // A stream lives until somebody ends it, or as long as the client says.
        let timeout = request.timeoutNanoseconds
        let deadline = timeout > 0 ? start.advanced(byNanoseconds: timeout) : .distantFuture
        let call = try call(
            method, caller, requestedTenantID: prepared.requestedTenantID, requestID: requestID, deadline: deadline,
            connection)
        let byteCount = request.payload.count
        try begin(stream, kind, of: caller, byteCount, deadline: deadline, on: connection) { [self] connection in
            do {
                try await prepared.run(call, connection, stream)
                connection.endStream(stream)
                method.metrics.record(.ok, nanoseconds: Instant.now.nanoseconds(since: start))
            } catch {
                fail(error, method, call.requestID, stream: stream, start: start, on: connection)
            }
        }
    }

    /// A bidirectional call whose REQUEST holds no message: the first DATA is the first message, and passes the gate.
    private func awaitFirst(
        _ prepare: @escaping @Sendable (UnsafeRawBufferPointer, Limits) throws -> PreparedStream,
        _ method: RegisteredMethod, _ caller: Caller?, _ request: RequestEnvelope, _ stream: UInt32,
        _ requestID: UnsafeRawBufferPointer, _ start: Instant, _ connection: isolated Connection
    ) throws {
        let timeout = request.timeoutNanoseconds
        let deadline = timeout > 0 ? start.advanced(byNanoseconds: timeout) : .distantFuture
        let requestID = Text(validating: requestID) ?? .empty
        try begin(stream, .remoteOpen, of: caller, 0, deadline: deadline, on: connection) { [self] connection in
            do {
                guard let first = try await connection.nextMessage(stream: stream) else {
                    return connection.endStream(stream)
                }
                let limits = context.project.limits
                let prepared = try first.withUnsafeBytes { try prepare($0, limits) }
                let call = try requestID.bytes.withUnsafeBytes { requestID -> Call in
                    try self.call(
                        method, caller, requestedTenantID: prepared.requestedTenantID, requestID: requestID,
                        deadline: deadline, connection)
                }
                try await prepared.run(call, connection, stream)
                connection.endStream(stream)
                method.metrics.record(.ok, nanoseconds: Instant.now.nanoseconds(since: start))
            } catch {
                fail(error, method, requestID, stream: stream, start: start, on: connection)
            }
        }
    }

    /// Runs a stream, which counts for its caller until it ends. RESOURCE_EXHAUSTED TOO_MANY_STREAMS.
    private func begin(
        _ stream: UInt32, _ kind: StreamKind, of caller: Caller?, _ requestByteCount: Int, deadline: Instant,
        on connection: isolated Connection, _ body: @escaping @Sendable (isolated Connection) async -> Void
    ) throws(Failure) {
        if let caller { try callerUse.openStream(of: caller.id) }
        connection.run(
            stream: stream, kind: kind, deadline: deadline, credential: caller, requestByteCount: requestByteCount
        ) { [callerUse] connection in
            await body(connection)
            if let caller { callerUse.closeStream(of: caller.id) }
        }
    }

    func fail(
        _ error: any Error, _ method: RegisteredMethod, _ requestID: Text, stream: UInt32, start: Instant,
        on connection: isolated Connection
    ) {
        let failure = Failure(mapping: error)
        requestID.bytes.withUnsafeBytes { requestID in
            connection.fail(stream: stream, failure, metadata: OutgoingMetadata(requestID: requestID))
        }
        finished(method, failure, error, requestID: requestID, start: start)
    }

    /// The caller's deadline, or the method's own; never beyond the server's maximum.
    func deadline(_ method: RegisteredMethod, _ timeoutNanoseconds: Int64, start: Instant) -> Instant {
        let longest = start.advanced(by: context.project.limits.requestTimeoutMax)
        if timeoutNanoseconds > 0 { return min(longest, start.advanced(byNanoseconds: timeoutNanoseconds)) }
        return min(longest, start.advanced(by: .milliseconds(method.descriptor.timeoutMillis)))
    }

    func finished(
        _ method: RegisteredMethod, _ failure: Failure, _ error: any Error, requestID: Text?, start: Instant
    ) {
        let now = Instant.now
        method.metrics.record(failure.code, nanoseconds: now.nanoseconds(since: start))
        failureLog.write(method, failure, error, requestID: requestID ?? .empty, start: start, now: now)
    }
}

extension Failure {
    fileprivate static let deadlinePassedBefore = Failure(
        .deadlineExceeded, "DEADLINE_EXCEEDED", "The deadline had passed before the call began; nothing was done.")

    static let unknownMethod = Failure(
        .unimplemented, "UNKNOWN_METHOD", "There is no such service or method; reflection lists those there are.")
}
