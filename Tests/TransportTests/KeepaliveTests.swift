import Base
import Messages
import TLS
import TestSupport
import Testing
import Wire

@testable import Transport

/// Silent peers are asked whether they are there.
@Suite struct KeepaliveTests {
    private static func limits(
        interval: Duration = .milliseconds(50), timeout: Duration, idleTimeout: Duration = .seconds(3_600)
    ) -> Limits {
        var limits = Limits()
        limits.keepaliveInterval = interval
        limits.keepaliveTimeout = timeout
        limits.idleTimeout = idleTimeout
        return limits
    }

    /// A client that has sent HELLO and made a call. If it was slow, it has answered PINGs by then.
    private static func connect(_ server: TLSServer) throws -> RawClient {
        let client = try RawClient(port: server.port)
        _ = try client.hello()
        try client.send(client.request(Echo.echo, WireKeyValue(key: "a"), stream: client.nextStream()))
        while true {
            let frame = try client.readFrame()
            guard frame.header.type == .ping else {
                _ = try RawClient.response(frame, returning: WireKeyValue.self)
                return client
            }
            try answer(frame, client)
        }
    }

    private static func answer(_ frame: RawClient.Frame, _ client: RawClient) throws {
        var opaque: UInt64 = 0
        for byte in frame.payload { opaque = opaque << 8 | UInt64(byte) }
        var bytes = ByteBuffer()
        ControlFrame.ping(opaque, ack: true).append(to: &bytes)
        try client.send(bytes.copyBytes())
    }

    @Test func `A peer that does not answer is gone`() async throws {
        let limits = Self.limits(interval: .milliseconds(500), timeout: .seconds(1))
        try await TLSServer.run(limits: limits) { server in
            let client = try Self.connect(server)
            let frames = try client.readUntilClosed()
            #expect(frames.map(\.header.type) == [.ping])
            #expect(server.server.metrics.connectionsSilent.value == 1)
        }
    }

    @Test func `A peer that answers stays, and is idle all the same`() async throws {
        try await TLSServer.run(limits: Self.limits(timeout: .seconds(60), idleTimeout: .seconds(3))) { server in
            let client = try Self.connect(server)
            var pings = 0
            while true {
                let frame = try client.readFrame()
                guard frame.header.type == .ping else {
                    #expect(frame.header.type == .goAway)
                    break
                }
                pings += 1
                // Only the idle timeout ends this.
                try #require(pings < 1_000)
                try Self.answer(frame, client)
            }
            #expect(pings > 1)
            #expect(server.server.metrics.connectionsSilent.value == 0)
        }
    }

    @Test func `Nobody is asked when it is off, or without a greeting`() async throws {
        var off = Self.limits(timeout: .seconds(60), idleTimeout: .seconds(1))
        off.keepaliveInterval = .zero
        try await TLSServer.run(limits: off) { server in
            let frames = try Self.connect(server).readUntilClosed()
            #expect(!frames.contains { $0.header.type == .ping })
        }
        // A client that has not sent HELLO does not know control frames.
        try await TLSServer.run(limits: Self.limits(timeout: .seconds(60), idleTimeout: .seconds(1))) { server in
            let client = try RawClient(port: server.port)
            _ = try client.call(Echo.echo, WireKeyValue(key: "a"), returning: WireKeyValue.self)
            #expect(try !client.readUntilClosed().contains { $0.header.type == .ping })
            #expect(server.server.metrics.connectionsSilent.value == 0)
        }
    }
}
