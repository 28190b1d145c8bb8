import Base
import Messages
import Reactor
import Service
import Store
import TestSupport
import Testing

@testable import Transport

/// What a client leaves waiting on one stream holds its other calls up no longer than it has to.
@Suite struct HTTP2RoomTests {
    private typealias Frame = RawHTTP2.Frame

    private static let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    /// Asks reflection for a file: answers of some KiB.
    private static let question = GRPCServerReflectionRequest(
        host: "", messageRequest: .fileContainingSymbol("postern.v1.Users")
    ).encoded()

    private static func authorization(_ server: TestServer) -> [(String, String)] {
        [("authorization", server.adminKey.bearer.string)]
    }

    /// A unary call with an empty message.
    private static func call(_ stream: UInt32, _ path: String, _ server: TestServer, timeout: String) -> [Frame] {
        let fields = authorization(server) + [("grpc-timeout", timeout)]
        return [RawHTTP2.request(stream, path, fields), RawHTTP2.message(stream)]
    }

    private static func window(_ byteCount: Int, stream: UInt32 = 0) -> Frame {
        Frame(
            type: RawHTTP2.windowUpdate, stream: stream, payload: RawHTTP2.bigEndian(UInt32(byteCount), 4))
    }

    /// Returns when the server has taken in what was sent before.
    private static func catchUp(_ raw: RawHTTP2) throws {
        try raw.send(Frame(type: RawHTTP2.ping, payload: Array(repeating: 7, count: 8)))
        _ = try raw.read(RawHTTP2.ping)
    }

    // MARK: Answers that are taken back

    /// The client has a small window: the answer on stream 1 waits, and the call on stream 3 waits for it. Then the
    /// client takes the first call back, and sends nothing more.
    private static func takeBack(_ raw: RawHTTP2, first: [Frame], second: [Frame]) throws {
        try raw.send(first)
        _ = try raw.read(RawHTTP2.headers, stream: 1)
        try catchUp(raw)
        try raw.send(second)
        try catchUp(raw)
        try raw.send(Frame(type: RawHTTP2.reset, stream: 1, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4)))
        // Only a failure has no message behind its headers.
        let answer = try raw.read(RawHTTP2.headers, stream: 3)
        #expect(answer.flags & RawHTTP2.endStream == 0)
    }

    @Test func `A call that was not begun because answers wait is begun when they are taken back`() async throws {
        try await withServer(configure: { $0.limits.unreadOutputMax = 8 * 1_024 }) { server in
            let raw = try RawHTTP2(server, settings: [(4, 100)])
            let question = [
                RawHTTP2.request(1, Self.reflection, Self.authorization(server)), RawHTTP2.message(1, Self.question),
            ]
            try Self.takeBack(
                raw, first: question, second: Self.call(3, "/postern.v1.Project/ServerInfo", server, timeout: "10S"))
        }
    }

    @Test func `A page that waits for an answer is made when that is taken back`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server, settings: [(4, 0)])
            let list = "/postern.v1.Users/List"
            try Self.takeBack(
                raw, first: Self.call(1, list, server, timeout: "20S"),
                second: Self.call(3, list, server, timeout: "10S"))
        }
    }

    // MARK: Memory

    /// Counts memory as if other connections of callers without a tenant held it. Returns when it is counted.
    private static func hold(_ byteCount: Int, _ server: TestServer) async throws {
        let (memory, isHeld) = (server.instance.server.memory, Promise<Void>())
        server.instance.loops.loops[0].run {
            memory.add(byteCount, loop: 0)
            memory.enter(WriteMeter.project).add(byteCount)
            isHeld.succeed(())
        }
        try await isHeld.value()
    }

    /// The answer on stream 1 waits for its window, so that the connection is read from and its calls wait.
    @Test func `A call that was not begun while memory was short is begun when there is memory`() async throws {
        let memoryMax = 8 << 20
        let configure: @Sendable (inout Instance.Configuration) -> Void = {
            $0.limits.connectionMemoryMax = memoryMax
            $0.limits.connectionMemoryShare = 4 * 1_024
        }
        try await withServer(configure: configure) { server in
            let raw = try RawHTTP2(server, settings: [(4, 100)])
            try raw.send(
                RawHTTP2.request(1, Self.reflection, Self.authorization(server)),
                RawHTTP2.message(1, Self.question, flags: 0))
            _ = try raw.read(RawHTTP2.data, stream: 1)
            // Above three quarters of what the connections may hold, and below seven eighths.
            try await Self.hold(memoryMax / 16 * 13, server)
            try raw.send(Self.call(3, "/postern.v1.Project/ServerInfo", server, timeout: "10S"))
            try Self.catchUp(raw)
            try await Self.hold(-memoryMax / 16 * 13, server)
            // Only a failure has no message behind its headers.
            let answer = try raw.read(RawHTTP2.headers, stream: 3)
            #expect(answer.flags & RawHTTP2.endStream == 0)
        }
    }

    // MARK: Windows

    @Test func `A stream whose client takes its time holds up no other call`() async throws {
        try await withServer(configure: { $0.limits.unreadOutputMax = 4 * 1_024 }) { server in
            // The stream's first message is longer than its window: the rest waits, for as long as the client likes.
            let raw = try RawHTTP2(server, settings: [(4, 1_000)])
            try raw.send(
                RawHTTP2.request(1, Self.reflection, Self.authorization(server)),
                RawHTTP2.message(1, Self.question, flags: 0))
            _ = try raw.read(RawHTTP2.data, stream: 1)
            let calls: [(UInt32, String)] = [(3, "/postern.v1.Users/List"), (5, "/postern.v1.Project/ServerInfo")]
            for (stream, path) in calls {
                try raw.send(Self.call(stream, path, server, timeout: "10S"))
                let answer = try raw.read(RawHTTP2.headers, stream: stream)
                #expect(answer.flags & RawHTTP2.endStream == 0, "\(path)")
            }
        }
    }

    /// The beginning of a message of a MiB that takes more than half of the stream's window.
    private static func beginLargeMessage(_ stream: UInt32, _ server: TestServer) -> [Frame] {
        let prefix = Frame(type: RawHTTP2.data, stream: stream, payload: [0] + RawHTTP2.bigEndian(1 << 20, 4))
        let part = Frame(type: RawHTTP2.data, stream: stream, payload: Array(repeating: 0, count: 16_000))
        return [RawHTTP2.request(stream, "/postern.v1.Users/Import", authorization(server)), prefix]
            + Array(repeating: part, count: 10)
    }

    /// Only one message at a time may be longer than its window. The client sends nothing after the reset, so that
    /// only the end of the first call can let the second message through.
    @Test func `A large message is let through when the call that kept it waiting has ended`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            try raw.send(Self.call(1, "/postern.v1.Project/ServerInfo", server, timeout: "10S"))
            // The stream's larger window counts from the acknowledgement on.
            var acknowledged = 0
            while acknowledged < 2 {
                guard try raw.read(RawHTTP2.settings).flags == 0 else { continue }
                try raw.send(Frame(type: RawHTTP2.settings, flags: 1))
                acknowledged += 1
            }
            try raw.send(Self.beginLargeMessage(3, server))
            _ = try raw.read(RawHTTP2.windowUpdate, stream: 3)
            try raw.send(Self.beginLargeMessage(5, server))
            try Self.catchUp(raw)
            try raw.send(Frame(type: RawHTTP2.reset, stream: 3, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4)))
            #expect(try raw.read(RawHTTP2.windowUpdate, stream: 5).payload.count == 4)
        }
    }

    /// The answer on stream 1 is whole, and longer than its window. Those on stream 3 fill the socket.
    @Test func `A client that reads again is heard, although an answer waits for the window it opens`() async throws {
        try await withServer(configure: { $0.limits.unreadOutputMax = 8 * 1_024 }) { server in
            let raw = try RawHTTP2(server, settings: [(4, 1_000)], receiveByteCount: 4_096)
            let metrics = server.instance.server.metrics
            let sentBefore = metrics.bytesSent.value
            let many = (0..<60).map { _ in RawHTTP2.message(3, Self.question, flags: 0) }
            try raw.send(
                [
                    RawHTTP2.request(1, Self.reflection, Self.authorization(server)),
                    RawHTTP2.message(1, Self.question),
                    RawHTTP2.request(3, Self.reflection, Self.authorization(server)),
                    Self.window(1 << 24, stream: 3), Self.window(1 << 24),
                ] + many)
            try await Self.untilStill(above: sentBefore) { metrics.bytesSent.value }
            let received = metrics.bytesReceived.value
            try raw.send(Self.window(1 << 20, stream: 1))
            try await until("the server reads") { metrics.bytesReceived.value != received }
            let end = try #require(try raw.readAnswer(1).last)
            #expect(end.type == RawHTTP2.headers && end.flags & RawHTTP2.endStream != 0)
        }
    }

    /// Returns when the number has grown, and has not changed for half a second.
    private static func untilStill(above first: UInt64, _ value: () -> UInt64) async throws {
        var (last, unchanged) = (first, 0)
        try await until("the number does not change any more") {
            let now = value()
            unchanged = now == last && now > first ? unchanged + 1 : 0
            last = now
            return unchanged >= 100
        }
    }
}
