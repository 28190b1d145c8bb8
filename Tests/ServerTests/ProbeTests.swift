import Base
import Reactor
import Service
import TestSupport
import Testing

/// The routes that supervisors and load balancers ask.
@Suite struct ProbeTests {
    private static func answer(_ path: Text, of server: TestServer) -> String? {
        guard let response = server.instance.sidePortRoutes[path]?() else { return nil }
        return "\(response.status) " + String(decoding: response.body, as: UTF8.self)
    }

    @Test func `A server that stops is alive and not ready`() async throws {
        try await withServer { server in
            #expect(Self.answer("/livez", of: server) == "200 LIVE\n")
            #expect(Self.answer("/readyz", of: server) == "200 READY\n")
            #expect(Self.answer("/healthz", of: server) == "200 SERVING\n")
            await server.instance.drain()
            #expect(Self.answer("/livez", of: server) == "200 LIVE\n")
            #expect(Self.answer("/readyz", of: server) == "503 NOT_READY\n")
            #expect(Self.answer("/healthz", of: server) == "503 NOT_SERVING\n")
        }
    }
}
