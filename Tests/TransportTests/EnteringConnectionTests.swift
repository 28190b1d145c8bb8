import Base
import Messages
import Reactor
import TestSupport
import Testing
import Wire

@testable import Transport

/// A connection that has got its place, and enters while the server has begun to stop.
@Suite struct EnteringConnectionTests {
    /// Lets a connection enter, and answers its call, when the test says so.
    private final class Gate: Dispatcher {
        let hasPlace = Base.Semaphore()
        let mayEnter = Base.Semaphore()
        let mayAnswer = Promise<Void>()

        func makeConnectionContext() -> AnyObject {
            hasPlace.signal()
            mayEnter.wait()
            return self
        }

        func authenticate(_ authorization: Text, on connection: isolated Connection) {}

        func handle(
            _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
        ) {
            let mayAnswer = mayAnswer
            connection.run(stream: stream, kind: kind, deadline: .distantFuture, requestByteCount: 0) { connection in
                try? await mayAnswer.cancellableValue()
                connection.respond(stream: stream, metadata: OutgoingMetadata()) { _ in }
            }
        }
    }

    @Test func `It is told to go elsewhere, and the server waits for its calls`() async throws {
        let gate = Gate()
        try await LoopServer.run(gate) { adopting in
            let server = adopting.server
            let (client, theirs) = try RawClient.pair()
            var hello = ByteBuffer()
            hello.appendHello(WireHello(protocolVersion: 1, software: "raw"))
            let request = client.request("test.Service/Late", WireKeyValue(), stream: client.nextStream())
            try client.send(hello.copyBytes() + request)
            adopting.loop.run { server.adopt(theirs) }
            try await until { gate.hasPlace.takeSignal() }
            let drained = Task { await server.drain() }
            try await until { server.stop == .announced }
            gate.mayEnter.signal()
            #expect(try client.readFrame().header.type == .hello)
            #expect(try client.readFrame().header.type == .goAway)
            gate.mayAnswer.succeed(())
            #expect(try client.readUntilClosed().map(\.header.type) == [.response])
            await drained.value
        }
    }

    @Test func `It is closed if the server has closed all others`() async throws {
        let gate = Gate()
        try await LoopServer.run(gate) { adopting in
            let server = adopting.server
            let (client, theirs) = try RawClient.pair()
            adopting.loop.run { server.adopt(theirs) }
            try await until { gate.hasPlace.takeSignal() }
            await server.closeAll()
            gate.mayEnter.signal()
            #expect(try client.readUntilClosed().isEmpty)
        }
    }
}
