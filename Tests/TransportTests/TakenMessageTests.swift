import Base
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// A stream by gRPC keeps no memory of messages that its handler has taken, whatever waits behind them.
@Suite struct TakenMessageTests {
    private static func waiting(on connection: isolated Connection) -> (byteCount: Int, capacity: Int)? {
        guard let session = connection.session as? GRPCSession, let stream = session.streams[1] else { return nil }
        return (stream.input.readableByteCount, stream.input.capacity)
    }

    @Test func `The beginning of a message keeps no memory of the one before it`() async throws {
        try await LoopServer.run(Taking()) { server in
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            let long = UnpackedMessageTests.message([UInt8](repeating: 7, count: 12_000), isPacked: false)
            let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + UnpackedMessageTests.frame(4, [])
            let data = UnpackedMessageTests.frame(0, stream: 1, long + [0])
            try client.send(preface + UnpackedMessageTests.headers(1) + data)
            try await until("the connection is there") { server.server.state.withLock { !$0.connections.isEmpty } }
            let connections = server.server.state.withLock { Array($0.connections.values) }
            let connection = try #require(connections.first)
            try await until("the long message is taken") { await Self.waiting(on: connection)?.byteCount == 1 }
            let capacity = await Self.waiting(on: connection)?.capacity ?? .max
            #expect(capacity <= 4 * 1024)
            client.close()
        }
    }
}

/// Takes the messages of every stream.
private final class Taking: Dispatcher {
    func makeConnectionContext() -> AnyObject { self }

    func authenticate(_ authorization: Text, on connection: isolated Connection) {}

    func kind(service: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer) -> StreamKind? { .remoteOpen }

    func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        connection.authenticated(line: Echo.line)
        connection.run(stream: stream, kind: kind, deadline: .distantFuture, requestByteCount: 0) { connection in
            while let message = try? await connection.nextMessage(stream: stream) { _ = message }
        }
    }
}
