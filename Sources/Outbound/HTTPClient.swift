public import Base
public import Reactor
import Synchronization

/// Sends requests to other servers over HTTP, on the pool's threads, within limits of time, size and address.
///
/// Only `https`, and `http` to loopback if the request allows it; certificates verified; no redirections, proxies,
/// cookies or compression; only addresses that the request's `NetworkPolicy` permits. Connections are kept and used
/// again, never across policies. Any thread.
public final class HTTPClient: Sendable {
    /// The most requests of one tenant at a time, so that a provider that hangs holds up no requests of other tenants.
    private let requestsPerTenantMax: Int
    private let pool: WorkerPool
    private let certificateFile: String?
    private let state = Mutex(State())

    private struct State {
        var idle: [NetworkPolicy: [CurlHandle]] = [:]
        var requestCounts: [Text: Int] = [:]
    }

    private static let idleHandlesMax = 16

    /// `certificateFile`: PEM certificates to trust instead of the system's.
    public init(pool: WorkerPool, requestsPerTenantMax: Int, certificateFile: String? = nil) {
        self.pool = pool
        self.requestsPerTenantMax = requestsPerTenantMax
        self.certificateFile = certificateFile
    }

    /// Sends `request` for `tenant` and returns its answer, whatever its status, but not a redirection. If the task's
    /// call has a trace, the request carries its `traceparent`.
    ///
    /// - Throws: `OutboundError`; the pool's error if it is full or closed or the deadline passes; `CancellationError`.
    public func send(_ request: HTTPRequest, tenant: Text, deadline: Instant) async throws -> HTTPAnswer {
        try await send(request, tenant: tenant, deadline: deadline) { $0 }
    }

    /// The same, with work on the answer, which also runs on the pool's thread.
    public func send<Value: Sendable>(
        _ request: HTTPRequest, tenant: Text, deadline: Instant,
        _ transform: @escaping @Sendable (HTTPAnswer) throws -> Value
    ) async throws -> Value {
        guard !request.url.isPlaintext || request.policy.allowsHTTPToLoopback else {
            throw OutboundError.addressNotAllowed
        }
        try begin(tenant)
        defer { end(tenant) }
        var request = request
        if let parent = CallTrace.current?.parent { request.fields.append(.init("traceparent", parent.header)) }
        let cancelFlag = CancelFlag()
        return try await withTaskCancellationHandler {
            try await pool.run(tenant: tenant, deadline: deadline) { [self, request] in
                try transform(exchange(request, cancelFlag, deadline))
            }
        } onCancel: {
            cancelFlag.set()
        }
    }

    /// Runs `work` on one of the threads that send requests. The work counts as a request of `tenant`.
    public func compute<Value: Sendable>(
        tenant: Text, deadline: Instant, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try begin(tenant)
        defer { end(tenant) }
        return try await pool.run(tenant: tenant, deadline: deadline, work)
    }

    private func exchange(_ request: HTTPRequest, _ cancelFlag: CancelFlag, _ deadline: Instant) throws -> HTTPAnswer {
        let handle = state.withLock { $0.idle[request.policy]?.popLast() } ?? CurlHandle()
        defer {
            state.withLock { state in
                guard state.idle[request.policy, default: []].count < Self.idleHandlesMax else { return }
                state.idle[request.policy, default: []].append(handle)
            }
        }
        return try HTTPExchange(request, cancelFlag: cancelFlag).perform(
            on: handle, certificateFile: certificateFile, deadline: deadline)
    }

    private func begin(_ tenant: Text) throws(OutboundError) {
        let isAdmitted = state.withLock { state in
            guard state.requestCounts[tenant, default: 0] < requestsPerTenantMax else { return false }
            state.requestCounts[tenant, default: 0] += 1
            return true
        }
        if !isAdmitted { throw .overloaded }
    }

    private func end(_ tenant: Text) {
        state.withLock { state in
            let count = state.requestCounts[tenant, default: 0] - 1
            state.requestCounts[tenant] = count > 0 ? count : nil
        }
    }
}
