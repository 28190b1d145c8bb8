import Base
import Identity
import Reactor
import Service
import TestSupport
import Testing

/// What /metrics says of the process itself.
@Suite struct MetricsTests {
    private static func sample(_ name: String, of server: TestServer) -> Double? {
        guard let body = server.instance.sidePortRoutes["/metrics"]?().body else { return nil }
        let line = String(decoding: body, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: " ").last.flatMap { Double($0) }
    }

    @Test func `The process tells what it uses`() async throws {
        try await withServer { server in
            #expect(Self.sample(#"postern_build_info{version=""#, of: server) == 1)
            let start = try #require(Self.sample("process_start_time_seconds ", of: server))
            #expect(start == Double(server.project.clock.now().microseconds) / 1_000_000)
            let before = try #require(Self.sample("process_open_fds ", of: server))
            let clients = [try server.connect(), try server.connect(), try server.connect()]
            for client in clients { _ = try client.hello() }
            let after = try #require(Self.sample("process_open_fds ", of: server))
            // Both ends of each connection are in this process.
            #expect(after == before + 6)
            #expect(try #require(Self.sample("process_max_fds ", of: server)) > after)
            #expect(try #require(Self.sample("process_resident_memory_bytes ", of: server)) > 1_000_000)
            #expect(try #require(Self.sample("process_cpu_seconds_total ", of: server)) > 0)
        }
    }
}
