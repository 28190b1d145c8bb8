import Base
import Identity
import Service
import Synchronization
import TestSupport
import Testing
import Transport

/// What a hostile client of HTTP/2 can send: each attack is bounded and counted, ends with a precise code, and another
/// client is served beside it.
@Suite struct HTTP2AttackTests {
    private typealias Frame = RawHTTP2.Frame

    /// Sends an attack on a connection of its own and returns the code of the GOAWAY that ends it.
    private func codeOfEnd(
        _ server: TestServer, _ attack: (RawHTTP2) throws -> Void
    ) throws -> UInt32? {
        let raw = try RawHTTP2(server)
        // The server may end the connection before all is sent.
        do { try attack(raw) } catch RawClient.RawError.system {}
        let frames = try raw.readUntilClosed()
        try expectServed(server)
        return frames.last { $0.type == RawHTTP2.goAway }?.numbers.last
    }

    private func expectServed(_ server: TestServer) throws {
        let raw = try RawHTTP2(server)
        try raw.send(RawHTTP2.request(1), RawHTTP2.message(1))
        let answer = try raw.readAnswer(1)
        #expect(answer.map(\.type) == [RawHTTP2.headers, RawHTTP2.data, RawHTTP2.headers])
    }

    @Test func `A call by hand is answered`() async throws {
        try await withServer { server in try expectServed(server) }
    }

    @Test func `A request that is refused for its headers counts once`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            let sound = RawHTTP2.fields("/grpc.health.v1.Health/Check")
            func with(_ name: String, _ value: String) -> [(String, String)] {
                sound.map { $0.0 == name ? (name, value) : $0 }
            }
            let requests = [
                sound + [("grpc-encoding", "br")], sound + [("grpc-timeout", "soon")],
                with("content-type", "text/plain"), with(":method", "PUT"), with(":path", "/nowhere"),
            ]
            for (number, fields) in requests.enumerated() {
                let stream = UInt32(2 * number + 1)
                try raw.send(
                    Frame(
                        type: RawHTTP2.headers, flags: RawHTTP2.endHeaders | RawHTTP2.endStream, stream: stream,
                        payload: RawHTTP2.block(fields)))
                #expect(try raw.readAnswer(stream).last?.type == RawHTTP2.headers)
                #expect(Int(server.instance.server.metrics.framesRefused.value) == number + 1, "\(fields)")
            }
        }
    }

    @Test func `Rapid reset ends the connection`() async throws {
        try await withServer { server in
            let code = try codeOfEnd(server) { raw in
                for number in 0..<UInt32(server.project.limits.cancelsPerSecondMax * 4) {
                    let stream = 2 * number + 1
                    try raw.send(
                        RawHTTP2.request(stream, "/grpc.health.v1.Health/Watch"), RawHTTP2.message(stream),
                        Frame(
                            type: RawHTTP2.reset, stream: stream, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4)))
                }
            }
            #expect(code == RawHTTP2.enhanceYourCalm)
            #expect(server.instance.server.metrics.framesRefused.value > 0)
        }
    }

    /// nghttp2 refuses these requests by itself as long as the client has not acknowledged the maximum.
    @Test func `Requests above the maximum of streams end the connection if they go on`() async throws {
        try await withServer { server in
            let limits = server.project.limits
            let code = try codeOfEnd(server) { raw in
                for number in 0..<UInt32(limits.streamsMaxUnauthenticated + limits.cancelsPerSecondMax * 4) {
                    let stream = 2 * number + 1
                    try raw.send(RawHTTP2.request(stream, "/grpc.health.v1.Health/Watch"), RawHTTP2.message(stream))
                }
            }
            #expect(code == RawHTTP2.enhanceYourCalm)
            #expect(server.instance.server.metrics.framesRefused.value > 0)
        }
    }

    @Test func `Headers without an end are given up at their bound`() async throws {
        try await withServer { server in
            let frames = server.project.limits.headerFramesMax
            func attack(_ count: Int, last: UInt8) -> [Frame] {
                var sent = [RawHTTP2.request(1, flags: RawHTTP2.endStream)]
                for number in 1..<count {
                    sent.append(
                        Frame(
                            type: RawHTTP2.continuation, flags: number == count - 1 ? last : 0, stream: 1,
                            payload: RawHTTP2.block([("x-\(number)", "y")])))
                }
                return sent
            }
            let endless = try codeOfEnd(server) { try $0.send(attack(frames + 1, last: 0)) }
            #expect(endless == RawHTTP2.enhanceYourCalm)
            let raw = try RawHTTP2(server)
            try raw.send(attack(frames, last: RawHTTP2.endHeaders))
            // The call has no message, but its headers are accepted.
            #expect(try raw.readAnswer(1).first?.type == RawHTTP2.headers)
            let large = Frame(type: RawHTTP2.headers, stream: 1, payload: Array(repeating: 0x82, count: 16_384))
            let more = Frame(type: RawHTTP2.continuation, stream: 1, payload: large.payload)
            let tooLarge = try codeOfEnd(server) { try $0.send(large, more, more) }
            #expect(tooLarge == RawHTTP2.enhanceYourCalm)
        }
    }

    @Test func `Frames that carry nothing are counted`() async throws {
        try await withServer { server in
            let idleMax = server.project.limits.idleFramesPerSecondMax
            let pings = server.project.limits.pingsPerSecondMax
            let floods: [(Int, Frame)] = [
                (idleMax, Frame(type: RawHTTP2.settings)),
                (idleMax, Frame(type: RawHTTP2.priority, stream: 3, payload: [0, 0, 0, 0, 1])),
                (idleMax, Frame(type: 0xFA)),
                (idleMax, Frame(type: RawHTTP2.windowUpdate, payload: RawHTTP2.bigEndian(1, 4))),
                (pings, Frame(type: RawHTTP2.ping, payload: Array(repeating: 7, count: 8))),
            ]
            for (most, frame) in floods {
                // Twice as many may pass when a new second begins between them.
                let code = try codeOfEnd(server) { try $0.send(Array(repeating: frame, count: 2 * most + 2)) }
                #expect(code == RawHTTP2.enhanceYourCalm, "frame type \(frame.type)")
            }
            let code = try codeOfEnd(server) { raw in
                try raw.send(RawHTTP2.request(1))
                try raw.send(Array(repeating: Frame(type: RawHTTP2.data, stream: 1), count: 2 * idleMax + 2))
            }
            #expect(code == RawHTTP2.enhanceYourCalm)
            // Ends of a stream that has ended: HTTP/2 passes over them.
            let codeOfEnds = try codeOfEnd(server) { raw in
                try raw.send(RawHTTP2.request(1), RawHTTP2.message(1))
                _ = try raw.readAnswer(1)
                let end = Frame(type: RawHTTP2.data, flags: RawHTTP2.endStream, stream: 1)
                try raw.send(Array(repeating: end, count: 2 * idleMax + 3))
            }
            #expect(codeOfEnds == RawHTTP2.enhanceYourCalm)
        }
    }

    @Test func `What RFC 9113 forbids ends the connection`() async throws {
        try await withServer { server in
            let cases: [(String, UInt32, [Frame])] = [
                ("an even stream", RawHTTP2.protocolError, [RawHTTP2.request(2)]),
                ("DATA before its headers", RawHTTP2.protocolError, [RawHTTP2.message(5)]),
                (
                    "other frames between headers", RawHTTP2.protocolError,
                    [RawHTTP2.request(1, flags: 0), Frame(type: RawHTTP2.ping, payload: Array(repeating: 0, count: 8))]
                ),
                (
                    "a window of 2^31", RawHTTP2.flowControlError,
                    [Frame(type: RawHTTP2.windowUpdate, payload: [0x7F, 0xFF, 0xFF, 0xFF])]
                ),
                ("no window", RawHTTP2.protocolError, [Frame(type: RawHTTP2.windowUpdate, payload: [0, 0, 0, 0])]),
                ("a short PING", RawHTTP2.frameSizeError, [Frame(type: RawHTTP2.ping, payload: [0])]),
                (
                    "a frame above 16 KiB", RawHTTP2.frameSizeError,
                    [
                        RawHTTP2.request(1),
                        Frame(type: RawHTTP2.data, stream: 1, payload: Array(repeating: 0, count: 16_385)),
                    ]
                ),
                (
                    "a table of fields beyond its bound", RawHTTP2.compressionError,
                    [Frame(type: RawHTTP2.headers, flags: 4, stream: 1, payload: [0x3F, 0xFF, 0xFF, 0xFF, 0x0F])]
                ),
            ]
            for (name, expected, frames) in cases {
                let code = try codeOfEnd(server) { try $0.send(frames) }
                #expect(code == expected, "\(name)")
            }
        }
    }

    @Test func `Bytes that are no HTTP2 end the connection`() async throws {
        try await withServer { server in
            for text in ["POST / HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"] {
                let raw = try RawHTTP2(server, begins: false)
                try raw.client.send([UInt8](text.utf8))
                let frames = try raw.readUntilClosed()
                #expect(!frames.contains { $0.type == RawHTTP2.headers })
            }
            try expectServed(server)
        }
    }

    @Test func `Another first byte closes the connection, is counted and logged`() async throws {
        let lines = Lines()
        try await withServer(log: Log { lines.append($0) }) { server in
            for byte: UInt8 in [0x67, 0xFF, 0x01] {
                let client = try server.connect(authenticated: false)
                try client.send([byte, 0, 0, 0])
                #expect(try client.receive(1).isEmpty)
            }
            #expect(server.instance.server.metrics.connectionsUnknown.value == 3)
        }
        #expect(lines.text.contains("began with a byte of no protocol"))
    }

    @Test func `More calls than there may be are refused, and can be sent again`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            let most = UInt32(server.project.limits.streamsMaxUnauthenticated)
            for number in 0..<most {
                let stream = 2 * number + 1
                try raw.send(RawHTTP2.request(stream, "/grpc.health.v1.Health/Watch"), RawHTTP2.message(stream))
            }
            let next = 2 * most + 1
            try raw.send(RawHTTP2.request(next), RawHTTP2.message(next))
            #expect(try raw.read(RawHTTP2.reset, stream: next).numbers.first == RawHTTP2.refusedStream)
            try raw.send(Frame(type: RawHTTP2.reset, stream: 1, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4)))
            // The call counts until its work has stopped.
            var isAnswered = false
            for number in 1...100 where !isAnswered {
                let stream = next + 2 * UInt32(number)
                try raw.send(RawHTTP2.request(stream), RawHTTP2.message(stream))
                isAnswered = try raw.readAnswer(stream).last?.type == RawHTTP2.headers
            }
            #expect(isAnswered)
        }
    }

    @Test func `DATA beyond its window or its content-length is refused`() async throws {
        try await withServer { server in
            let beyond = try RawHTTP2(server)
            // The window counts once the client has acknowledged the server's SETTINGS.
            _ = try beyond.read(RawHTTP2.settings)
            try beyond.send(Frame(type: RawHTTP2.settings, flags: 1), RawHTTP2.request(1, "/postern.v1.Users/Get"))
            let kibibytes = server.project.limits.streamWindowUnauthenticated / 1_024 + 1
            let chunk = Frame(type: RawHTTP2.data, stream: 1, payload: Array(repeating: 0, count: 1_024))
            try beyond.send(Array(repeating: chunk, count: kibibytes))
            #expect(try beyond.read(RawHTTP2.reset, stream: 1).numbers.first == RawHTTP2.flowControlError)
            let raw = try RawHTTP2(server)
            try raw.send(
                RawHTTP2.request(1, "/grpc.health.v1.Health/Check", [("content-length", "3")]), RawHTTP2.message(1))
            #expect(try raw.readAnswer(1).last?.numbers.first == RawHTTP2.protocolError)
        }
    }
}

private final class Lines: Sendable {
    private let bytes = Mutex<[UInt8]>([])

    var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }

    func append(_ line: [UInt8]) { bytes.withLock { $0 += line } }
}
