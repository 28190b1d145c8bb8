import Base
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// A stream that waits for its client's window is not woken by what its connection sends otherwise: a client may have
/// hundreds of such streams, and would wake all of them with each small request.
@Suite struct WokenSendersTests {
    /// Answers unary calls, and sends on streams for as long as it may.
    private final class Streams: Dispatcher {
        let connection = Mutex<Connection?>(nil)

        func makeConnectionContext() -> AnyObject { self }
        func authenticate(_ authorization: Text, on connection: isolated Connection) {}

        func handle(
            _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
        ) {
            connection.authenticated(line: "tests")
            self.connection.withLock { $0 = connection }
            guard kind == .remoteClosed else {
                return connection.respond(stream: stream, metadata: OutgoingMetadata()) { _ in }
            }
            connection.run(stream: stream, kind: kind, deadline: .distantFuture, requestByteCount: 0) { connection in
                while (try? await Self.sendOne(stream, connection)) != nil {}
            }
        }

        private static func sendOne(_ stream: UInt32, _ connection: isolated Connection) async throws {
            try await connection.send(stream: stream, heldByteCount: 100, turn: nil) { buffer in
                buffer.append(contentsOf: [UInt8](repeating: 7, count: 100))
                return (true, ())
            }
        }
    }

    @Test func `Streams without a window sleep while their connection answers other calls`() async throws {
        let streams = Streams()
        try await LoopServer.run(streams) { server in
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            // One message costs 110 bytes of a stream's window.
            _ = try client.hello(WireHello(protocolVersion: 1, initialWindow: 100, software: "raw"))
            let count = 10
            for _ in 0..<count {
                try client.send(
                    client.request(
                        "test.Service/Watch", WireKeyValue(), stream: client.nextStream(), kind: .remoteClosed))
                #expect(try client.readFrame().header.type == .data)
            }
            let connection = try #require(streams.connection.withLock { $0 })
            // A stream waits a moment after its message has come.
            try await until("each stream waits") { await connection.waitingSenders.count == count }
            let before = await connection.waitingSenders
            for _ in 0..<3 { let _: WireKeyValue = try client.call("test.Service/Ask", WireKeyValue()) }
            let after = await connection.waitingSenders
            #expect(after.count == count)
            #expect(after.allSatisfy { before[$0.key] === $0.value })
            // A stream whose window is opened goes on.
            var update = ByteBuffer()
            ControlFrame.window(stream: 1, credit: 100).append(to: &update)
            try client.send(update.copyBytes())
            let frame = try client.readFrame()
            #expect(frame.header.type == .data && frame.header.stream == 1)
        }
    }

    /// The message that waits is memory which only the client can free.
    @Test func `A stream whose window is opened goes on when memory is nearly used up`() async throws {
        var limits = Limits()
        limits.connectionMemoryMax = 8 << 20
        try await LoopServer.run(Streams(), limits: limits) { server in
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            _ = try client.hello(WireHello(protocolVersion: 1, initialWindow: 100, software: "raw"))
            try client.send(
                client.request("test.Service/Watch", WireKeyValue(), stream: client.nextStream(), kind: .remoteClosed))
            #expect(try client.readFrame().header.type == .data)
            server.hold((8 << 20) / 16 * 15, line: "tests")
            var update = ByteBuffer()
            ControlFrame.window(stream: 1, credit: 100).append(to: &update)
            try client.send(update.copyBytes())
            let frame = try client.readFrame()
            #expect(frame.header.type == .data && frame.header.stream == 1)
            #expect(server.server.memory.pressure == .exhausted)
        }
    }
}

extension Connection {
    /// The promises by which streams that wait to send are woken.
    fileprivate var waitingSenders: [UInt32: Promise<Void>] { calls.compactMapValues { $0.sender } }
}
