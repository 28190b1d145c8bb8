import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// Thousands of requests that are ready at once do not keep another tenant's single one waiting, and each is answered.
@Suite struct ReadTurnTests {
    /// Answers with the payload. A call named "Slow" takes a millisecond of the loop, "Long" five, and "Quick" none.
    /// "Line" says whose line it is.
    private final class Slow: Dispatcher {
        /// The lines of these requests, in the order in which they were handled.
        let handled = Mutex<[Text]>([])

        func makeConnectionContext() -> AnyObject { self }
        func authenticate(_ authorization: Text, on connection: isolated Connection) {}

        func handle(
            _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
        ) {
            let times: [String: UInt32] = ["Slow": 1_000, "Long": 5_000, "Quick": 0]
            if let time = times[String(decoding: request.method, as: UTF8.self)] {
                if time > 0 { usleep(time) }
                let line = connection.line
                handled.withLock { $0.append(line) }
            } else if let line = try? WireKeyValue(decoding: request.payload).key {
                connection.authenticated(line: line)
            }
            let payload = [UInt8](request.payload)
            connection.respond(stream: stream, metadata: OutgoingMetadata()) { $0.append(contentsOf: payload) }
        }
    }

    private static let busyCount = 30
    private static let requestsEach = 40

    @Test func manyRequestsOfManyConnectionsLetAnotherLineThrough() async throws {
        let slow = Slow()
        try await LoopServer.run(slow) { server in
            let busy = try (0..<Self.busyCount).map { _ in try Self.connect(server, "busy") }
            let calm = try Self.connect(server, "calm")
            // Everything is there when the loop looks at its sockets again.
            try server.whileHeld {
                for client in busy { try Self.ask(client, Self.requestsEach) }
                try Self.ask(calm, 1)
            }
            for (client, count) in busy.map({ ($0, Self.requestsEach) }) + [(calm, 1)] {
                for _ in 0..<count { _ = try RawClient.response(client.readFrame(), returning: WireKeyValue.self) }
            }
            let handled = slow.handled.withLock { $0 }
            #expect(handled.count == Self.busyCount * Self.requestsEach + 1)
            let before = try #require(handled.firstIndex(of: "calm"))
            #expect(before < handled.count / 10, "\(before) of \(handled.count) requests came first")
        }
    }

    /// The line that has had the least time goes first: the many short requests of one line do not each wait for a long
    /// request of another one.
    @Test func manyConnectionsWithShortRequestsGoBeforeLongRequestsOfAnotherLine() async throws {
        let slow = Slow()
        try await LoopServer.run(slow) { server in
            let busy = try (0..<10).map { _ in try Self.connect(server, "busy") }
            let calm = try (0..<20).map { _ in try Self.connect(server, "calm") }
            try server.whileHeld {
                for client in busy { try Self.ask(client, 8, "Long") }
                for client in calm { try Self.ask(client, 1, "Quick") }
            }
            for (client, count) in busy.map({ ($0, 8) }) + calm.map({ ($0, 1) }) {
                for _ in 0..<count { _ = try RawClient.response(client.readFrame(), returning: WireKeyValue.self) }
            }
            let handled = slow.handled.withLock { $0 }
            #expect(handled.count == 100)
            let last = try #require(handled.lastIndex(of: "calm"))
            // The sockets that are read first may be of the busy line, and decode four requests each.
            #expect(last < 20 + 24, "\(last - 19) long requests came first")
        }
    }

    /// A connection that sends more than a turn decodes is not read further, and loses nothing when it ends.
    @Test func whatWaitsForItsTurnIsAnsweredAfterThePeerStoppedSending() async throws {
        let slow = Slow()
        try await LoopServer.run(slow) { server in
            let client = try Self.connect(server, "one")
            for _ in 0..<5 { try Self.ask(client, Self.requestsEach) }
            client.closeForWriting()
            #expect(try client.readUntilClosed().count == 5 * Self.requestsEach)
            #expect(slow.handled.withLock { $0.count } == 5 * Self.requestsEach)
        }
    }

    private static func connect(_ server: LoopServer, _ line: Text) throws -> RawClient {
        let (ours, theirs) = try RawClient.pair()
        server.server.adopt(theirs)
        let _: WireKeyValue = try ours.call("test.Service/Line", WireKeyValue(key: line))
        return ours
    }

    private static func ask(_ client: RawClient, _ count: Int, _ method: String = "Slow") throws {
        let requests = (0..<count).flatMap { _ in
            client.request("test.Service/\(method)", WireKeyValue(key: "x"), stream: client.nextStream())
        }
        try client.send(requests)
    }
}
