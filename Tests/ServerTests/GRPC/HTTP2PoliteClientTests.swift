import Base
import Identity
import Messages
import Service
import TestSupport
import Testing
import Transport

/// Frames that good clients send are not taken for attacks, however often they come.
@Suite struct HTTP2PoliteClientTests {
    private typealias Frame = RawHTTP2.Frame

    @Test(arguments: [false, true]) func `A client that leaves is no refusal`(callsBefore: Bool) async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            if callsBefore { try raw.send(RawHTTP2.request(1), RawHTTP2.message(1)) }
            try raw.send(Frame(type: RawHTTP2.goAway, payload: Array(repeating: 0, count: 8)))
            let frames = try raw.readUntilClosed()
            #expect(frames.contains { $0.type == RawHTTP2.headers && $0.stream == 1 } == callsBefore)
            #expect(server.instance.server.metrics.framesRefused.value == 0)
        }
    }

    /// The frames come after the streams that they belong to, or after the client had waited for something.
    @Test func `Late frames end nothing`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            try raw.send(RawHTTP2.request(1), RawHTTP2.message(1))
            _ = try raw.readAnswer(1)
            let update = Frame(type: RawHTTP2.windowUpdate, stream: 1, payload: RawHTTP2.bigEndian(5, 4))
            let reset = Frame(type: RawHTTP2.reset, stream: 1, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4))
            // The first PING of a server that stops has the number 1.
            let answer = Frame(type: RawHTTP2.ping, flags: 1, payload: [0, 0, 0, 0, 0, 0, 0, 1])
            let answers = Array(repeating: answer, count: 3 * server.project.limits.pingsPerSecondMax)
            try raw.send([update, reset] + answers)
            try raw.send(RawHTTP2.request(3), RawHTTP2.message(3))
            #expect(try raw.readAnswer(3).last?.type == RawHTTP2.headers)
            #expect(server.instance.server.metrics.framesRefused.value == 0)
        }
    }

    /// Clients open both windows for each DATA that they read, some in several steps.
    @Test func `Windows that are opened in small steps are not too many frames`() async throws {
        try await withServer(configure: { $0.limits.idleFramesPerSecondMax = 20 }) { server in
            let raw = try RawHTTP2(server, settings: [(4, 10)])
            let question = GRPCServerReflectionRequest(
                host: "", messageRequest: .fileContainingSymbol("postern.v1.Users")
            ).encoded()
            try raw.send(
                RawHTTP2.request(
                    1, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                    [("authorization", server.adminKey.bearer.string)]),
                RawHTTP2.message(1, question))
            var updates = 0
            while true {
                let frame = try raw.readFrame()
                try #require(frame.type != RawHTTP2.goAway && frame.type != RawHTTP2.reset)
                if frame.type == RawHTTP2.headers, frame.flags & RawHTTP2.endStream != 0 { break }
                guard frame.type == RawHTTP2.data, !frame.payload.isEmpty else { continue }
                let first = frame.payload.count / 2
                for step in [first, frame.payload.count - first] where step > 0 {
                    for stream: UInt32 in [0, 1] {
                        let payload = RawHTTP2.bigEndian(UInt32(step), 4)
                        try raw.send(Frame(type: RawHTTP2.windowUpdate, stream: stream, payload: payload))
                        updates += 1
                    }
                }
            }
            #expect(updates > 200)
        }
    }

    /// A client of grpc-go sends a PING with each answer that it reads.
    @Test func `A PING for each answer is not too many`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            let ping = Frame(type: RawHTTP2.ping, payload: Array(repeating: 7, count: 8))
            for number in 0..<UInt32(5 * server.project.limits.pingsPerSecondMax) {
                let stream = 2 * number + 1
                try raw.send(RawHTTP2.request(stream), RawHTTP2.message(stream))
                #expect(try raw.readAnswer(stream).last?.type == RawHTTP2.headers)
                try raw.send(ping)
                _ = try raw.read(RawHTTP2.ping)
            }
        }
    }
}
