import Base
import Outbound
import Reactor
import TestSupport

/// A client with its pool, and a server that answers what `handler` says. Both are gone when `body` returns.
func withClient<Result>(
    certificateFile: String? = nil,
    _ handler: @escaping FakeHTTPServer.Handler = { _ in .response(HTTPResponse(body: Array("hello".utf8))) },
    _ body: (HTTPClient, FakeHTTPServer) async throws -> Result
) async throws -> Result {
    let pool = WorkerPool(name: "http", workers: 4, queueMax: 16, queueMaxPerTenant: 16)
    let server = FakeHTTPServer(handler)
    defer { end(pool, server) }
    let client = HTTPClient(pool: OutboundPool(pool), certificateFile: certificateFile)
    return try await body(client, server)
}

/// Closing may block a test's thread for a moment.
private func end(_ pool: WorkerPool, _ server: FakeHTTPServer) {
    server.close()
    pool.close()
}

extension NetworkPolicy {
    static let local = NetworkPolicy(allowsHTTPToLoopback: true)
}

/// The error that `body` throws.
func outboundError(_ body: () async throws -> Void) async -> OutboundError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? OutboundError
    }
}

extension Instant {
    static var soon: Instant { .now.advanced(by: .seconds(20)) }
}
