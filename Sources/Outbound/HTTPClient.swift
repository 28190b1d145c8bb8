public import Base
import Synchronization

/// Sends requests to other servers over HTTP, on the pool's threads, within limits of time, size and address.
///
/// Only `https`, and `http` to loopback if the request allows it; certificates verified; no redirections, proxies,
/// cookies or compression; only addresses that the request's `NetworkPolicy` permits. Connections are kept and used
/// again, never across policies. Any thread.
public final class HTTPClient: Sendable {
    private let pool: OutboundPool
    private let lookups: NameLookups
    private let certificateFile: String?
    private let idle = Mutex<[NetworkPolicy: [CurlHandle]]>([:])

    private static let idleHandlesMax = 16

    /// `lookups`: shared by all clients of the pool. `certificateFile`: PEM certificates to trust instead
    /// of the system's.
    public init(
        pool: OutboundPool, lookups: NameLookups = NameLookups(), certificateFile: String? = nil
    ) {
        self.pool = pool
        self.lookups = lookups
        self.certificateFile = certificateFile
    }

    /// Sends `request` for `tenant` and returns its answer, whatever its status, but not a redirection. If the task's
    /// call has a trace, the request carries its `traceparent`. `source`: whom the request is for, among those who
    /// share the tenant's turns.
    ///
    /// - Throws: `OutboundError`; the pool's error if it is full or closed or the deadline passes; `CancellationError`.
    public func send(
        _ request: HTTPRequest, tenant: Text, source: Text = .empty, deadline: Instant
    ) async throws -> HTTPAnswer {
        try await send(request, tenant: tenant, source: source, deadline: deadline) { $0 }
    }

    /// Sends `request` as above, and returns the result of `transform`, which runs on the pool's thread.
    public func send<Value: Sendable>(
        _ request: HTTPRequest, tenant: Text, source: Text = .empty, deadline: Instant,
        _ transform: @escaping @Sendable (HTTPAnswer) throws -> Value
    ) async throws -> Value {
        guard !request.url.isPlaintext || request.policy.allowsHTTPToLoopback else {
            throw OutboundError.addressNotAllowed
        }
        var request = request
        if let parent = CallTrace.current?.parent { request.fields.append(.init("traceparent", parent.header)) }
        let cancelFlag = CancelFlag()
        return try await withTaskCancellationHandler {
            try await pool.run(tenant: tenant, source: source, deadline: deadline) { [self, request] in
                try transform(exchange(request, tenant, cancelFlag, deadline))
            }
        } onCancel: {
            cancelFlag.set()
        }
    }

    /// Runs `work` on one of the threads that send requests. The work counts as a request of `tenant`.
    public func compute<Value: Sendable>(
        tenant: Text, source: Text = .empty, deadline: Instant, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await pool.run(tenant: tenant, source: source, deadline: deadline, work)
    }

    private func exchange(
        _ request: HTTPRequest, _ tenant: Text, _ cancelFlag: CancelFlag, _ deadline: Instant
    ) throws -> HTTPAnswer {
        let handle = idle.withLock { $0[request.policy]?.popLast() } ?? CurlHandle()
        defer {
            idle.withLock { idle in
                guard idle[request.policy, default: []].count < Self.idleHandlesMax else { return }
                idle[request.policy, default: []].append(handle)
            }
        }
        return try HTTPExchange(request, cancelFlag: cancelFlag).perform(
            on: handle, certificateFile: certificateFile, deadline: deadline
        ) { try lookups.addresses(of: request.url.host, tenant: tenant, within: $0) }
    }
}
