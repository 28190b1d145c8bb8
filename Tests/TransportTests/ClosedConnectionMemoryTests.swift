import Base
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// What the calls of a closed connection hold counts until they have ended. Otherwise a client could connect again and
/// again, and leave calls behind that nothing bounds.
@Suite struct ClosedConnectionMemoryTests {
    @Test func `The calls of a closed connection count until they end, for their line too`() async throws {
        let calls = StubbornCalls()
        try await LoopServer.run(calls) { server in
            let memory = server.server.memory
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            _ = try client.hello()
            for _ in 0..<3 { try client.send(client.request(Echo.hold, WireKeyValue(), stream: client.nextStream())) }
            try await until("the calls have begun") { calls.running.withLock { $0.count } == 3 }
            let connections = server.server.state.withLock { Array($0.connections.values) }
            let connection = try #require(connections.first)
            await connection.closeNow()
            let held = 3 * (StubbornCalls.requestByteCount + StubbornCalls.decodedByteCount)
            #expect(memory.byteCount >= held)
            let lineByteCount = memory.enter(Echo.line).byteCount
            memory.leave(Echo.line)
            // A line is counted in steps.
            #expect(lineByteCount >= held - Limits().connectionMemoryShare / 4)
            calls.end(1)
            try await until("one call less counts") { memory.byteCount < held }
            #expect(memory.byteCount >= held / 3 * 2)
            calls.end(2)
            try await until("nothing counts") { memory.byteCount == 0 && memory.lineCount == 0 }
            client.close()
        }
    }
}

/// Calls that do not end when they are cancelled.
private final class StubbornCalls: Dispatcher {
    static let requestByteCount = 40 * 1024
    static let decodedByteCount = 60 * 1024

    let running = Mutex<[Promise<Void>]>([])

    func makeConnectionContext() -> AnyObject { self }

    func authenticate(_ authorization: Text, on connection: isolated Connection) {}

    func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        connection.authenticated(line: Echo.line)
        let end = Promise<Void>()
        connection.run(
            stream: stream, kind: kind, deadline: .distantFuture, requestByteCount: Self.requestByteCount
        ) { _ in
            _ = try? await end.value()
        }
        connection.holds(stream: stream, byteCount: Self.decodedByteCount)
        running.withLock { $0.append(end) }
    }

    func end(_ count: Int) {
        let ended = running.withLock { running in
            let ended = Array(running.prefix(count))
            running.removeFirst(count)
            return ended
        }
        for call in ended { call.succeed(()) }
    }
}
