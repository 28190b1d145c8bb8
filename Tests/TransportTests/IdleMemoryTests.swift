import Base
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// A connection that had many calls at once, and is silent since, keeps nothing of them. There may be thousands.
@Suite struct IdleMemoryTests {
    private static func tableCapacity(_ connection: isolated Connection) -> Int { connection.calls.capacity }

    /// Waits until the connection's table of calls has a capacity that `isSo`.
    private static func untilTable(of connection: Connection, _ isSo: (Int) -> Bool) async throws {
        try await until("the table has that capacity") { isSo(await tableCapacity(connection)) }
    }

    @Test(arguments: [0, 2])
    func `A silent connection gives back the table of many calls`(goingOn: Int) async throws {
        var limits = Limits()
        limits.cancelsPerSecondMax = 1_000
        try await LoopServer.run(limits: limits) { server in
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            _ = try client.hello()
            let _: WireKeyValue = try client.call(Echo.echo, WireKeyValue(key: "first"))
            let connections = server.server.state.withLock { Array($0.connections.values) }
            let connection = try #require(connections.first)
            let streams = (0..<200).map { _ in client.nextStream() }
            try client.send(streams.flatMap { client.request(Echo.hold, WireKeyValue(), stream: $0) })
            try await Self.untilTable(of: connection) { $0 >= streams.count }
            var cancels = ByteBuffer()
            for stream in streams.dropFirst(goingOn) {
                ControlFrame.cancel(stream: stream, .cancelled).append(to: &cancels)
            }
            try client.send(cancels.copyBytes())
            // After five seconds.
            try await Self.untilTable(of: connection) { $0 <= Connection.tableCapacityKept }
            client.close()
        }
    }
}
