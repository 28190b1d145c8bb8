import Base
import Glibc
import Messages
import TestSupport
import Testing

/// posternd with few file descriptors, all of which strangers want.
@Suite struct DescriptorAttackTests {
    private static func withDaemon(_ body: (_ port: UInt16, _ httpPort: UInt16, _ key: Secret) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let port = try freePort()
            let httpPort = try freePort()
            let server = try CrashTests.start(
                directory, port, openFilesMax: 200, httpPort: httpPort,
                settings: ["--connections-unauthenticated-per-address-max", "1000"])
            defer { server.kill() }
            try body(port, httpPort, try CrashTests.adminKey(directory))
        }
    }

    private static func ask(_ port: UInt16, _ key: Secret) throws {
        let client = try RawClient(port: port)
        client.apiKey = key
        _ = try client.call("postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
    }

    private static func health(_ httpPort: UInt16) throws -> String {
        let client = try RawClient(port: httpPort)
        try client.send([UInt8]("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        return String(decoding: try client.receive(4_096), as: UTF8.self)
    }

    @Test func `Half a request on each of 260 HTTP connections does not touch the RPC port`() throws {
        try Self.withDaemon { port, httpPort, key in
            var halves: [RawClient] = []
            for _ in 0..<260 {
                let half = try RawClient(port: httpPort)
                try half.send([UInt8]("GET /healthz HTTP/1.1\r\nHost:".utf8))
                halves.append(half)
            }
            for _ in 0..<10 { try Self.ask(port, key) }
            #expect(try Self.health(httpPort).hasPrefix("HTTP/1.1 200 "))
        }
    }

    @Test func `As many RPC connections as there are descriptors leave room for an admin and for a probe`() throws {
        try Self.withDaemon { port, httpPort, key in
            var strangers: [RawClient] = []
            for _ in 0..<300 { strangers.append(try RawClient(port: port)) }
            for _ in 0..<10 { try Self.ask(port, key) }
            #expect(try Self.health(httpPort).hasPrefix("HTTP/1.1 200 "))
        }
    }
}
