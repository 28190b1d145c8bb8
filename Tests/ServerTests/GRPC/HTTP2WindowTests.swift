import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// Clients grant no room for what they asked: the server keeps a bounded amount for them, for a bounded time.
@Suite struct HTTP2WindowTests {
    private typealias Frame = RawHTTP2.Frame

    private static func authorization(_ server: TestServer) -> [(String, String)] {
        [("authorization", server.adminKey.withBytes { "Bearer " + String(decoding: $0, as: UTF8.self) })]
    }

    private static func window(_ byteCount: Int, stream: UInt32 = 0) -> Frame {
        Frame(
            type: RawHTTP2.windowUpdate, stream: stream,
            payload: RawHTTP2.bigEndian(UInt32(byteCount), 4))
    }

    /// Asks reflection for a file: answers of some KiB.
    private static let question = GRPCServerReflectionRequest(
        host: "", messageRequest: .fileContainingSymbol("postern.v1.Users")
    ).encoded()

    private static func ask(
        _ raw: RawHTTP2, _ server: TestServer, count: Int, flags: UInt8 = RawHTTP2.endStream
    ) throws {
        try raw.send(
            RawHTTP2.request(
                1, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", authorization(server)))
        for number in 1...count {
            try raw.send(RawHTTP2.message(1, question, flags: number == count ? flags : 0))
        }
    }

    /// The bytes of DATA that answer one question.
    private static func answerByteCount(_ server: TestServer) throws -> Int {
        let raw = try RawHTTP2(server, settings: [(4, 1 << 20)])
        try raw.send(window(1 << 20))
        try ask(raw, server, count: 1)
        return try raw.readAnswer(1).filter { $0.type == RawHTTP2.data }.reduce(0) { $0 + $1.payload.count }
    }

    @Test func `A stream whose window was used up exactly goes on when it is opened`() async throws {
        try await withServer { server in
            let byteCount = try Self.answerByteCount(server)
            #expect(byteCount > 1_000)
            let raw = try RawHTTP2(server, settings: [(4, UInt32(byteCount))])
            try raw.send(Self.window(1 << 20))
            try Self.ask(raw, server, count: 3)
            for number in 1...3 {
                var left = byteCount
                while left > 0 { left -= try raw.read(RawHTTP2.data, stream: 1).payload.count }
                #expect(left == 0)
                if number < 3 { try raw.send(Self.window(byteCount, stream: 1)) }
            }
            // The trailers wait for no window.
            #expect(try raw.read(RawHTTP2.headers, stream: 1).flags & RawHTTP2.endStream != 0)
        }
    }

    @Test func `Answers without a window are kept up to a bound, and sent when it opens`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server, settings: [(4, 0)])
            let count: UInt32 = 200
            // The first shows the credential; then more calls may be open.
            for stream in stride(from: UInt32(1), to: 2 * count, by: 2) {
                try raw.send(
                    RawHTTP2.request(stream, "/postern.v1.Users/List", Self.authorization(server)),
                    RawHTTP2.message(stream))
                if stream == 1 { _ = try raw.read(RawHTTP2.headers, stream: 1) }
            }
            try raw.send(Self.window(1 << 20))
            try raw.send(Frame(type: RawHTTP2.settings, payload: [0, 4] + RawHTTP2.bigEndian(65_535, 4)))
            var answered: Set<UInt32> = []
            while answered.count < Int(count) {
                let frame = try raw.readFrame()
                try #require(frame.type != RawHTTP2.goAway && frame.type != RawHTTP2.reset)
                if frame.type == RawHTTP2.headers, frame.flags & RawHTTP2.endStream != 0 {
                    answered.insert(frame.stream)
                }
            }
        }
    }

    @Test func `A client that never opens its window is let go`() async throws {
        try await withServer(configure: { $0.limits.writeTimeout = .milliseconds(300) }) { server in
            let raw = try RawHTTP2(server, settings: [(4, 0)])
            try raw.send(
                RawHTTP2.request(1, "/grpc.health.v1.Health/Check", Self.authorization(server)),
                RawHTTP2.message(1))
            let frames = try raw.readUntilClosed()
            #expect(frames.contains { $0.type == RawHTTP2.goAway })
            #expect(!frames.contains { $0.type == RawHTTP2.data })
        }
    }

    @Test func `A request that does not come whole fails, and the connection stays`() async throws {
        try await withServer(configure: { $0.limits.requestTimeoutMax = .milliseconds(300) }) { server in
            let raw = try RawHTTP2(server)
            try raw.send(RawHTTP2.request(1), Frame(type: RawHTTP2.data, stream: 1, payload: [0, 0]))
            let answer = try raw.readAnswer(1)
            #expect(answer.map(\.type) == [RawHTTP2.headers])
            try raw.send(RawHTTP2.request(3), RawHTTP2.message(3))
            #expect(try raw.readAnswer(3).last?.type == RawHTTP2.headers)
        }
    }

    @Test func `A stream's message that does not come whole ends its stream, and no other`() async throws {
        try await withServer(configure: { $0.limits.requestTimeoutMax = .milliseconds(300) }) { server in
            let raw = try RawHTTP2(server, settings: [(4, 1 << 20)])
            try raw.send(Self.window(1 << 20))
            let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            for stream: UInt32 in [1, 3] {
                try raw.send(
                    RawHTTP2.request(stream, reflection, Self.authorization(server)),
                    RawHTTP2.message(stream, Self.question, flags: 0))
                _ = try raw.read(RawHTTP2.data, stream: stream)
            }
            try raw.send(Frame(type: RawHTTP2.data, stream: 1, payload: [0, 0, 0, 0, 9]))
            // The client sends byte by byte, and gains no time by that.
            try raw.send(Frame(type: RawHTTP2.data, stream: 1, payload: [10]))
            let end = try raw.read(RawHTTP2.headers, stream: 1)
            #expect(end.flags & RawHTTP2.endStream != 0)
            // The other stream has nothing unfinished: it may be silent as long as it likes.
            try raw.send(RawHTTP2.message(3, Self.question))
            #expect(try raw.readAnswer(3).last?.type == RawHTTP2.headers)
        }
    }

    @Test func `A client hears of its larger limits before it has an answer`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            try raw.send(RawHTTP2.request(1, reflection, Self.authorization(server)))
            let most = [0, 3] + RawHTTP2.bigEndian(UInt32(server.project.limits.streamsMax), 4)
            var entries: [[UInt8]] = []
            while !entries.contains(most) {
                let payload = try raw.read(RawHTTP2.settings).payload
                entries = stride(from: 0, to: payload.count, by: 6).map { Array(payload[$0...].prefix(6)) }
            }
        }
    }

    @Test func `A frame that does not come whole ends the connection`() async throws {
        try await withServer(configure: { $0.limits.frameTimeout = .milliseconds(300) }) { server in
            let raw = try RawHTTP2(server)
            try raw.client.send(Array(RawHTTP2.bytes(RawHTTP2.request(1)).dropLast(3)))
            let frames = try raw.readUntilClosed()
            #expect(frames.contains { $0.type == RawHTTP2.goAway })
        }
    }

    @Test func `A server that stops says goodbye twice and answers what is in flight`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            try raw.send(
                RawHTTP2.request(1, "/grpc.health.v1.Health/Watch"), RawHTTP2.message(1))
            _ = try raw.read(RawHTTP2.data, stream: 1)
            let drained = Task { await server.instance.drain() }
            #expect(try raw.read(RawHTTP2.goAway).numbers == [0x7FFF_FFFF, 0])
            let ping = try raw.read(RawHTTP2.ping)
            try raw.send(
                RawHTTP2.request(3), RawHTTP2.message(3),
                Frame(type: RawHTTP2.ping, flags: 1, payload: ping.payload))
            let rest = try raw.readUntilClosed()
            await drained.value
            #expect(rest.contains { $0.type == RawHTTP2.goAway && $0.numbers == [3, 0] })
            for stream: UInt32 in [1, 3] {
                #expect(
                    rest.contains {
                        $0.stream == stream && $0.type == RawHTTP2.headers && $0.flags & RawHTTP2.endStream != 0
                    }, "stream \(stream)")
            }
        }
    }
}
