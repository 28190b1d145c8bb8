import Base
import Messages
import TestSupport
import Testing
import Wire

@testable import Transport

/// The requests of streams count as memory for as long as the streams live, and do not keep a connection from being
/// read: nothing would ever free them.
@Suite struct StreamRequestMemoryTests {
    @Test func `A connection with many streams is read on`() async throws {
        try await LoopServer.run(LastingStreams()) { server in
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            _ = try client.hello()
            let count = 2 * Limits().waitingBytesMax / LastingStreams.requestByteCount
            for _ in 0..<count {
                let stream = client.nextStream()
                try client.send(client.request(Echo.hold, WireKeyValue(), stream: stream, kind: .remoteClosed))
            }
            let answer = try client.call(Echo.echo, WireKeyValue(key: "read"), returning: WireKeyValue.self)
            #expect(answer.key == "read")
            #expect(server.server.memory.byteCount >= count * LastingStreams.requestByteCount)
            client.close()
        }
    }
}

/// Streams to which only the server would write, and unary calls that are answered with their own payload.
private final class LastingStreams: Dispatcher {
    static let requestByteCount = 16 * 1_024

    func makeConnectionContext() -> AnyObject { self }

    func authenticate(_ authorization: Text, on connection: isolated Connection) {}

    func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        connection.authenticated(line: Echo.line)
        guard kind == .remoteClosed else {
            let payload = [UInt8](request.payload)
            return connection.respond(stream: stream, metadata: OutgoingMetadata()) { $0.append(contentsOf: payload) }
        }
        connection.run(
            stream: stream, kind: kind, deadline: .distantFuture, requestByteCount: Self.requestByteCount
        ) { _ in
            try? await Promise<Void>().cancellableValue()
        }
    }
}
