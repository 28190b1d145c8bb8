import Base
import Identity
import TestSupport
import Testing
import Wire

@testable import Service
@testable import Transport

/// A session keeps nothing of streams that are gone, whatever the client did with them.
@Suite struct GRPCSessionMemoryTests {
    private typealias Frame = RawHTTP2.Frame

    /// A session that is fed by hand, and asked for its events.
    private final class Fed {
        let session: GRPCSession
        private var output = OutputQueue()
        private var input = ByteBuffer()

        init(_ server: TestServer) {
            var limits = server.project.limits
            limits.cancelsPerSecondMax = 100_000
            limits.idleFramesPerSecondMax = 100_000
            session = GRPCSession(
                limits: SharedLimits(limits), methods: server.instance.router, metrics: TransportMetrics(), now: .now)
            input.append(contentsOf: RawHTTP2.preface + RawHTTP2.bytes(Frame(type: RawHTTP2.settings)))
        }

        func authenticate() { session.authenticated(output: &output) }

        /// Refuses a call, as the router does, and ends it.
        func refuse(_ stream: UInt32) {
            session.appendFailure(stream: stream, .unknownMethod, metadata: OutgoingMetadata(), output: &output)
            _ = session.finished(stream: stream, output: &output)
        }

        /// Takes these frames in, and refuses each call that begins. Returns how many objects of streams were gone
        /// before the session was asked for the next event.
        func refuseAll(_ frames: [Frame]) -> Int {
            input.append(contentsOf: frames.flatMap(RawHTTP2.bytes))
            var gone = 0
            while true {
                switch session.next(in: &input, output: &output, now: .now, mayBegin: true) {
                case .needMore, .close: return gone
                case .begin(let stream, _):
                    weak let begun = session.streams[stream]
                    refuse(stream)
                    if begun == nil { gone += 1 }
                default: break
                }
            }
        }

        /// The memory of the headers of all streams that the session keeps.
        var headersByteCount: Int {
            (session.streams.values + session.spareStreams).reduce(0) { $0 + $1.headers.capacity }
        }

        /// Takes these frames in; returns how many calls were begun, or -1 if the session closes.
        func take(_ frames: [Frame], mayBegin: Bool = true) -> Int {
            take(bytes: frames.flatMap(RawHTTP2.bytes), mayBegin: mayBegin)
        }

        func take(bytes: [UInt8], mayBegin: Bool = true) -> Int {
            input.append(contentsOf: bytes)
            var begun = 0
            while true {
                switch session.next(in: &input, output: &output, now: .now, mayBegin: mayBegin) {
                case .needMore: return begun
                case .begin: begun += 1
                case .close: return -1
                default: break
                }
            }
        }
    }

    /// The beginning of a message that says it has `declared` bytes.
    private static func part(_ stream: UInt32, declared: UInt32, _ byteCount: Int) -> Frame {
        let prefix = [0] + RawHTTP2.bigEndian(declared, 4)
        return Frame(
            type: RawHTTP2.data, stream: stream, payload: prefix + [UInt8](repeating: 0, count: byteCount - 5))
    }

    @Test func `Streams that waited with a large message leave no trace`() async throws {
        try await withServer { server in
            let fed = Fed(server)
            let half = server.project.limits.streamWindowUnauthenticated / 2
            #expect(fed.take([RawHTTP2.request(1), Self.part(1, declared: 60_000, half + 100)]) == 0)
            for number in 1...500 {
                let stream = UInt32(2 * number + 1)
                let small = (0..<20).map { _ in Frame(type: RawHTTP2.data, stream: stream, payload: [0]) }
                let last = Frame(type: RawHTTP2.data, flags: RawHTTP2.endStream, stream: stream, payload: [0])
                let part = Self.part(stream, declared: 60_000, half)
                #expect(fed.take([RawHTTP2.request(stream), part] + small + [last]) == 0)
            }
            #expect(fed.session.streams.count == 1 && fed.session.largeWaiting.sum { _ in 1 } <= 1)
            #expect(fed.session.waiting.isEmpty)
        }
    }

    /// nghttp2 has a limit of its own, which is lower than ours: 1,000 at once, and 33 a second.
    @Test func `Calls that were taken back before their turn leave no trace`() async throws {
        try await withServer { server in
            let fed = Fed(server)
            for number in 0..<1_500 {
                let stream = UInt32(2 * number + 1)
                let reset = Frame(
                    type: RawHTTP2.reset, stream: stream, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4))
                #expect(
                    fed.take([RawHTTP2.request(stream), RawHTTP2.message(stream), reset], mayBegin: false) == 0)
            }
            #expect(fed.session.streams.isEmpty && fed.session.waiting.isEmpty)
            #expect(fed.take([RawHTTP2.request(4_001), RawHTTP2.message(4_001)]) == 1)
        }
    }

    @Test func `A message that does not come whole is memory that is held, in an open stream too`() async throws {
        try await withServer { server in
            let fed = Fed(server)
            #expect(fed.session.heldSince == nil)
            let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            #expect(fed.take([RawHTTP2.request(1, reflection), Self.part(1, declared: 60_000, 500)]) == 1)
            #expect(fed.session.heldSince != nil)
        }
    }

    /// The connection reads the request's id for its log after the call was refused.
    @Test(arguments: ["/x/y", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"])
    func `A call's headers outlive the call until the next event`(path: String) async throws {
        try await withServer { server in
            let fed = Fed(server)
            fed.authenticate()
            let more = [("x-request-id", String(repeating: "r", count: 100))]
            for round in 0..<3 {
                let frames = (0..<80).map { number in
                    RawHTTP2.request(
                        UInt32(2 * (80 * round + number) + 1), path, more,
                        flags: RawHTTP2.endHeaders | RawHTTP2.endStream)
                }
                // All are there at the same time, so that there are more than are kept.
                #expect(fed.take(frames, mayBegin: false) == 0)
                #expect(fed.refuseAll([]) == 0)
            }
            #expect(fed.session.streams.isEmpty)
            #expect(fed.session.spareStreams.count == GRPCSession.sparesMax)
        }
    }

    @Test func `Headers are memory that is held, and little of it stays`() async throws {
        try await withServer { server in
            let fed = Fed(server)
            let long = [("authorization", String(repeating: "a", count: 7_900)), ("x-request-id", "a")]
            let streams = (0..<16).map { UInt32(2 * $0 + 1) }
            #expect(fed.take(streams.map { RawHTTP2.request($0, "/grpc.health.v1.Health/Check", long) }) == 0)
            #expect(fed.session.heldByteCount > 16 * 7_900)
            let resets = streams.map {
                Frame(type: RawHTTP2.reset, stream: $0, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4))
            }
            #expect(fed.take(resets) == 0)
            #expect(fed.session.streams.isEmpty && fed.session.heldByteCount <= 16 * 1_024)
            // The connection has been silent for some seconds.
            fed.session.releaseIdleMemory()
            #expect(fed.session.spareStreams.isEmpty && fed.session.heldByteCount == 0)
            #expect(fed.session.headersByteCount == 0)
            #expect(fed.session.notices.capacity + fed.session.waiting.capacity == 0)
        }
    }

    /// nghttp2 keeps the part of a field that has come. The last frame of a block may be the one that does not end.
    @Test(arguments: [0, RawHTTP2.endHeaders])
    func `Headers that have not come whole are memory that is held`(flags: UInt8) async throws {
        try await withServer { server in
            let fed = Fed(server)
            let path = "/grpc.health.v1.Health/Check"
            let block = RawHTTP2.block(RawHTTP2.fields(path, [("x-request-id", String(repeating: "a", count: 7_000))]))
            var bytes: [UInt8]
            if flags == 0 {
                let (begun, end) = ([UInt8](block.dropLast()), [UInt8](block.suffix(1)))
                bytes = RawHTTP2.bytes(Frame(type: RawHTTP2.headers, stream: 1, payload: begun))
                bytes += RawHTTP2.bytes(
                    Frame(type: RawHTTP2.continuation, flags: RawHTTP2.endHeaders, stream: 1, payload: end))
            } else {
                bytes = RawHTTP2.bytes(Frame(type: RawHTTP2.headers, flags: flags, stream: 1, payload: block))
            }
            // The head of the second frame has nine bytes, and its payload has one.
            #expect(fed.take(bytes: [UInt8](bytes.dropLast(10))) == 0)
            #expect(fed.session.heldByteCount > 7_000 && fed.session.partialSince != nil)
            #expect(fed.take(bytes: [UInt8](bytes.suffix(10))) == 0)
            // The stream has its headers, and waits for its message.
            #expect(fed.session.partialSince == nil)
            #expect(fed.session.heldByteCount == fed.session.headersByteCount + 1_024)
        }
    }

    /// It is kept so that a call allocates nothing, but nothing counts it.
    @Test func `The memory that is kept for later messages is little`() async throws {
        try await withServer { server in
            let fed = Fed(server)
            fed.authenticate()
            let streams = (0..<GRPCSession.sparesMax).map { UInt32(2 * $0 + 1) }
            #expect(
                fed.take(streams.flatMap { [RawHTTP2.request($0), Self.part($0, declared: 60_000, 2_000)] }) == 0)
            #expect(fed.session.spareStreams.isEmpty && fed.session.spareByteCount == 0)
            let resets = streams.map {
                Frame(type: RawHTTP2.reset, stream: $0, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4))
            }
            #expect(fed.take(resets) == 0)
            let spares = fed.session.spareStreams
            #expect(spares.count == streams.count)
            let kept = spares.reduce(0) { $0 + $1.input.capacity + $1.output.capacity }
            #expect(kept == fed.session.spareByteCount)
            #expect(kept > 0 && kept <= GRPCSession.spareByteCountMax)
            #expect(fed.take(streams.map { RawHTTP2.request($0 + 1_000) }) == 0)
            #expect(fed.session.spareStreams.isEmpty && fed.session.spareByteCount == 0)
        }
    }

    @Test func `An object that is kept for a later stream has no list of messages`() {
        let stream = GRPCStream()
        stream.begin(id: 1, at: .now)
        for _ in 0..<10_000 { stream.deliveredCosts.append(5) }
        stream.release()
        #expect(stream.deliveredCosts.isEmpty)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `The held memory of headers is that of the streams`(seed: UInt64) async throws {
        try await withServer { server in
            let fed = Fed(server)
            if seed % 2 == 0 { fed.authenticate() }
            var random = SeededRandom(seed: seed)
            for number in 0..<400 {
                let stream = UInt32(2 * number + 1)
                let id = String(repeating: "i", count: Int.random(in: 1...100, using: &random))
                let key = String(repeating: "k", count: Int.random(in: 1...5_000, using: &random))
                let path = Bool.random(using: &random) ? "/x/y" : "/grpc.health.v1.Health/Check"
                var frames = [RawHTTP2.request(stream, path, [("x-request-id", id), ("authorization", key)])]
                if Bool.random(using: &random) { frames.append(RawHTTP2.message(stream)) }
                if Bool.random(using: &random) {
                    let payload = RawHTTP2.bigEndian(RawHTTP2.cancel, 4)
                    frames.append(Frame(type: RawHTTP2.reset, stream: stream, payload: payload))
                }
                if Bool.random(using: &random) { _ = fed.refuseAll(frames) } else { _ = fed.take(frames) }
                #expect(fed.session.headersByteCount == fed.headersByteCount, "seed \(seed), stream \(stream)")
            }
        }
    }

    @Test func `What HTTP_2 has to end for its client counts as taken back`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            // Windows that overflow (RFC 9113, 6.9.1) end their streams.
            let update = RawHTTP2.bigEndian(0x7FFF_FFFF, 4)
            do {
                for number in 0..<UInt32(server.project.limits.cancelsPerSecondMax * 4) {
                    let stream = 2 * number + 1
                    try raw.send(
                        RawHTTP2.request(stream, "/grpc.health.v1.Health/Watch"), RawHTTP2.message(stream),
                        Frame(type: RawHTTP2.windowUpdate, stream: stream, payload: update),
                        Frame(type: RawHTTP2.windowUpdate, stream: stream, payload: update))
                }
            } catch RawClient.RawError.system {}
            let end = try raw.readUntilClosed().last { $0.type == RawHTTP2.goAway }
            #expect(end?.numbers.last == RawHTTP2.enhanceYourCalm)
        }
    }

    @Test func `A field that stands in a table is not unpacked without end`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            // Literal with incremental indexing (RFC 7541, 6.2.1): "x" with 4,000 bytes, which then is entry 62.
            let field = [0x40, 1, UInt8(ascii: "x"), 0x7F] + [0xA1, 0x1E] + [UInt8](repeating: 0x61, count: 4_000)
            let block = RawHTTP2.block(RawHTTP2.fields("/grpc.health.v1.Health/Check"))
            let first = Frame(
                type: RawHTTP2.headers, flags: RawHTTP2.endHeaders | RawHTTP2.endStream, stream: 1,
                payload: block + field)
            let many = Frame(
                type: RawHTTP2.headers, flags: RawHTTP2.endHeaders | RawHTTP2.endStream, stream: 3,
                payload: block + [UInt8](repeating: 0xBE, count: 10_000))
            do { try raw.send(first, many) } catch RawClient.RawError.system {}
            let end = try raw.readUntilClosed().last { $0.type == RawHTTP2.goAway }
            #expect(end?.numbers.last == RawHTTP2.enhanceYourCalm)
        }
    }
}
