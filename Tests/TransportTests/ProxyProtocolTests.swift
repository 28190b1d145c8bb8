import Base
import Messages
import Synchronization
import TLS
import TestSupport
import Testing
import Wire

@testable import Transport

/// Connections through a proxy: the address in its header counts, and nobody else may send a header.
@Suite struct ProxyProtocolTests {
    private static let here = [IPNetwork("127.0.0.0/8")!]
    private static let elsewhere = [IPNetwork("10.0.0.0/8")!]

    private static func who(_ client: RawClient) throws -> Text {
        try client.call(Echo.who, WireKeyValue(), returning: WireKeyValue.self).key
    }

    /// Whether the server closes without an answer.
    private static func isClosed(_ server: TLSServer, _ bytes: [UInt8]) throws -> Bool {
        let client = try RawClient(port: server.port)
        try client.send(bytes)
        return try isEnded(client)
    }

    /// Whether the connection ends, by a reset, too: the server may not have read what came.
    private static func isEnded(_ client: RawClient) throws -> Bool {
        do { return try client.receive(1).isEmpty } catch RawClient.RawError.closed { return true }
    }

    @Test func `The client that the header names is the peer, byte by byte or at once`() async throws {
        try await TLSServer.run(proxies: Self.here) { server in
            for header in [ProxyHeaders.of([127, 0, 0, 9]), ProxyHeaders.of([127, 0, 0, 9], extra: 200)] {
                let client = try RawClient(port: server.port)
                for byte in header { try client.send([byte]) }
                #expect(try Self.who(client) == "127.0.0.9")
                let other = try RawClient(port: server.port)
                let request = other.request(Echo.who, WireKeyValue(), stream: other.nextStream())
                try other.send(header + request)
                #expect(try RawClient.response(other.readFrame(), returning: WireKeyValue.self).key == "127.0.0.9")
            }
        }
    }

    @Test func `A proxy speaks for itself, too`() async throws {
        try await TLSServer.run(proxies: Self.here) { server in
            for header in [ProxyHeaders.local, ProxyHeaders.header(0x21, 0x00, [1, 2, 3])] {
                let client = try RawClient(port: server.port)
                try client.send(header)
                #expect(try Self.who(client) == "127.0.0.1")
            }
        }
    }

    @Test func `TLS begins behind the header, and plain text of a remote client is refused`() async throws {
        try await TLSServer.run(proxies: Self.here) { server in
            let header = ProxyHeaders.of([203, 0, 113, 9])
            let client = try TLSClient(port: server.port, server.certificates.clientConfiguration(), preface: header)
            let raw = RawClient.unconnected()
            try client.send(raw.request(Echo.who, WireKeyValue(), stream: 1))
            let answer = try client.receiveSome()
            #expect(String(decoding: answer, as: UTF8.self).contains("203.0.113.9"))
            #expect(try Self.isClosed(server, header + raw.request(Echo.who, WireKeyValue(), stream: 1)))
            #expect(server.tls.metrics.plaintextRefused.value == 1)
        }
    }

    @Test func `A proxy without a good header is closed, and that is said`() async throws {
        let lines = Lines()
        try await TLSServer.run(proxies: Self.here, log: Log { lines.append($0) }) { server in
            let request = RawClient.unconnected().request(Echo.who, WireKeyValue(), stream: 1)
            let bad: [[UInt8]] = [
                request, [UInt8]("PROXY TCP4 127.0.0.9 127.0.0.1 1 2\r\n".utf8) + request,
                ProxyHeaders.header(0x21, 0x12, [UInt8](repeating: 1, count: 12)) + request,
                ProxyHeaders.of([127, 0, 0, 9], extra: 600) + request,
            ]
            for bytes in bad {
                let isClosed = try Self.isClosed(server, bytes)
                #expect(isClosed)
            }
            #expect(server.server.proxyHeadersRefused.value == UInt64(bad.count))
            #expect(server.server.metrics.connectionsAccepted.value == 0)
        }
        #expect(lines.text.contains("closed for its header"))
        #expect(!lines.text.contains("127.0.0"), "no addresses in the log")
    }

    @Test func `A header of anybody else is refused`() async throws {
        let lines = Lines()
        let log = Log { lines.append($0) }
        try await TLSServer.run(proxies: Self.elsewhere, log: log) { server in
            #expect(try Self.isClosed(server, ProxyHeaders.of([203, 0, 113, 9])))
            let client = try RawClient(port: server.port)
            #expect(try Self.who(client) == "127.0.0.1")
        }
        try await TLSServer.run(configure: { settings, _ in settings.isRequired = true }, log: log) { server in
            let isClosed = try Self.isClosed(server, ProxyHeaders.of([203, 0, 113, 9]))
            #expect(isClosed)
        }
        #expect(lines.text.ranges(of: "not from proxy_protocol_from").count == 2)
    }

    @Test func `Places are counted by the clients' addresses`() async throws {
        var limits = Limits()
        limits.connectionsUnauthenticatedPerAddressMax = 1
        try await TLSServer.run(limits: limits, proxies: Self.here) { server in
            let clients = try (0..<5).map { _ in try RawClient(port: server.port) }
            // The echo server treats every client as known, but only after a first request.
            for (client, last) in zip(clients, [1, 2, 3, 4, 1] as [UInt8]) {
                try client.send(ProxyHeaders.of([127, 0, 0, last]))
                try await until { server.server.metrics.connectionsAccepted.value >= UInt64(last) }
            }
            #expect(try Self.isEnded(clients[0]), "the second one of its address took its place")
            for client in clients.dropFirst() { _ = try Self.who(client) }
        }
    }

    @Test func `A header has as long as a handshake, and few wait for theirs`() async throws {
        var limits = Limits()
        limits.tlsHandshakeTimeout = .milliseconds(500)
        try await TLSServer.run(limits: limits, proxies: Self.here) { server in
            let isClosed = try Self.isClosed(server, Array(ProxyHeaders.local.dropLast()))
            #expect(isClosed)
            #expect(server.server.proxyHeadersRefused.value == 1)
        }
        limits = Limits()
        limits.tlsHandshakesPerAddressMax = 2
        try await TLSServer.run(limits: limits, proxies: Self.here) { server in
            let clients = try (0..<3).map { _ in
                let client = try RawClient(port: server.port)
                try client.send([0x0D])
                return client
            }
            #expect(try Self.isEnded(clients[0]))
            for client in clients.dropFirst() {
                try client.send(Array(ProxyHeaders.local.dropFirst()))
                #expect(try Self.who(client) == "127.0.0.1")
            }
        }
    }
}

private final class Lines: Sendable {
    private let bytes = Mutex<[UInt8]>([])

    var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }

    func append(_ line: [UInt8]) { bytes.withLock { $0 += line } }
}
