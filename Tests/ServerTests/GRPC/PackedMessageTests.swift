import Base
import Identity
import TestSupport
import Testing
import Wire

@testable import Service
@testable import Transport

/// Unpacking a compressed message takes longer than anything else that a session does, so the connection looks at the
/// clock after each.
@Suite struct PackedMessageTests {
    private typealias Frame = RawHTTP2.Frame

    /// A million zeros, compressed by gzip -n.
    private static let bomb: [UInt8] =
        [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00,
            0x00, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x08, 0x5f, 0xa0,
        ] + [UInt8](repeating: 0, count: 1016) + [
            0x3e, 0x03, 0x1c, 0xea, 0x38, 0xa7, 0x00, 0x00, 0x10, 0x00,
        ]

    private static func call(_ stream: UInt32, _ message: [UInt8], isPacked: Bool) -> [Frame] {
        let flags = RawHTTP2.endStream
        let prefix: [UInt8] = [isPacked ? 1 : 0] + RawHTTP2.bigEndian(UInt32(message.count), 4)
        return [
            RawHTTP2.request(stream, "/grpc.health.v1.Health/Check", [("grpc-encoding", "gzip")]),
            Frame(type: RawHTTP2.data, flags: flags, stream: stream, payload: prefix + message),
        ]
    }

    /// What the session does with these frames: for each event, whether it took long, and whether a call began.
    private static func events(
        _ server: TestServer, _ frames: [Frame], isKnown: Bool
    ) -> [(isLong: Bool, begins: Bool)] {
        let session = GRPCSession(
            limits: SharedLimits(server.project.limits), methods: server.instance.router, metrics: TransportMetrics(),
            now: .now)
        var output = OutputQueue()
        var input = ByteBuffer()
        input.append(contentsOf: RawHTTP2.preface + RawHTTP2.bytes(Frame(type: RawHTTP2.settings)))
        if isKnown { session.authenticated(output: &output) }
        input.append(contentsOf: frames.flatMap(RawHTTP2.bytes))
        var events: [(isLong: Bool, begins: Bool)] = []
        while true {
            switch session.next(in: &input, output: &output, now: .now, mayBegin: true) {
            case .needMore, .close: return events
            case .begin: events.append((session.wasLong, true))
            default: events.append((session.wasLong, false))
            }
        }
    }

    @Test func `Each unpacking is an event of its own, whether it is refused or not`() async throws {
        try await withServer { server in
            let streams = (0..<6).map { 2 * UInt32($0) + 1 }
            // A million bytes are more than a stranger may send, so that each is refused.
            let refused = Self.events(
                server, streams.flatMap { Self.call($0, Self.bomb, isPacked: true) }, isKnown: false)
            #expect(refused.filter { $0.isLong && !$0.begins }.count == streams.count)
            let taken = Self.events(server, streams.flatMap { Self.call($0, Self.bomb, isPacked: true) }, isKnown: true)
            #expect(taken.filter { $0.isLong && $0.begins }.count == streams.count)
            let plain = Self.events(server, streams.flatMap { Self.call($0, [], isPacked: false) }, isKnown: true)
            #expect(plain.filter { !$0.isLong && $0.begins }.count == streams.count)
        }
    }

    /// gRPC's compression.md tells a message that cannot be read apart from a compression that the server lacks.
    @Test func `A compressed message of a request that names no compression is INTERNAL`() async throws {
        try await withServer { server in
            let caller = try GRPCCaller(port: server.port)
            let cases: [(firstByte: UInt8, encoding: Text?, code: StatusCode)] = [
                (1, nil, .internal), (1, "identity", .internal), (2, "gzip", .internal), (1, "br", .unimplemented),
                (0, "br", .unimplemented), (1, "gzip", .invalidArgument), (0, "gzip", .ok), (0, "identity", .ok),
            ]
            for (firstByte, encoding, code) in cases {
                let metadata = encoding.map { [OutgoingMetadata.Entry(key: "grpc-encoding", value: $0)] } ?? []
                let answer = try caller.call(
                    "grpc.health.v1.Health/Check", [[]], metadata: metadata, firstByte: firstByte)
                #expect((answer.failure?.code ?? .ok) == code, "\(firstByte) \(encoding?.string ?? "none")")
                #expect(answer.text("grpc-accept-encoding") == "identity,gzip")
            }
        }
    }

    /// One read brings up to 64 KiB, which may be thousands of frames.
    @Test func `Short frames are decoded piece by piece, with a look at the clock between`() async throws {
        try await withServer { server in
            var limits = server.project.limits
            limits.idleFramesPerSecondMax = 100_000
            let session = GRPCSession(
                limits: SharedLimits(limits), methods: server.instance.router, metrics: TransportMetrics(), now: .now)
            var output = OutputQueue()
            var input = ByteBuffer()
            input.append(contentsOf: RawHTTP2.preface + RawHTTP2.bytes(Frame(type: RawHTTP2.settings)))
            let update = Frame(type: RawHTTP2.windowUpdate, payload: RawHTTP2.bigEndian(1, 4))
            for _ in 0..<4_000 { input.append(contentsOf: RawHTTP2.bytes(update)) }
            var pieces = 0
            var left = input.readableByteCount
            while left > 0 {
                _ = session.next(in: &input, output: &output, now: .now, mayBegin: true)
                let taken = left - input.readableByteCount
                left -= taken
                pieces += 1
                #expect(taken <= GRPCSession.pieceByteCount)
                #expect(left == 0 || session.wasLong)
            }
            #expect(pieces > 10)
        }
    }
}
