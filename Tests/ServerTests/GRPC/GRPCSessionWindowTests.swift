import Base
import Identity
import TestSupport
import Testing
import Wire

@testable import Service
@testable import Transport

/// What a session does while its client has no window, asked of a session that is fed by hand.
@Suite struct GRPCSessionWindowTests {
    private typealias Frame = RawHTTP2.Frame

    /// A session with one stream, whose client has a window of 10 bytes, and on which a message of 100 bytes waits.
    private final class Waiting {
        let session: GRPCSession
        private var output = OutputQueue()
        private var input = ByteBuffer()

        init(_ server: TestServer) {
            session = GRPCSession(
                limits: SharedLimits(server.project.limits), methods: server.instance.router,
                metrics: TransportMetrics(), now: .now)
            input.append(contentsOf: RawHTTP2.preface)
            let settings = Frame(type: RawHTTP2.settings, payload: [0, 4] + RawHTTP2.bigEndian(10, 4))
            let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            _ = openings([settings, RawHTTP2.request(1, reflection)])
            let isSent = session.appendMessage(stream: 1, output: &output) { buffer in
                buffer.append(contentsOf: [UInt8](repeating: 1, count: 100))
                return true
            }
            #expect(isSent && session.pendingByteCount > 0)
        }

        /// Takes these frames in; returns how often the connection is told that there may be room for any stream.
        func openings(_ frames: [Frame]) -> Int {
            input.append(contentsOf: frames.flatMap(RawHTTP2.bytes))
            var count = 0
            while true {
                switch session.next(in: &input, output: &output, now: .now, mayBegin: true) {
                case .needMore, .close: return count
                case .windowOpened(0): count += 1
                default: break
                }
            }
        }

        func endStream() { session.appendEnd(stream: 1, output: &output) }
    }

    /// While the stream is open, its message may wait for any time.
    @Test func `A stream that ends gives its client the whole time to take what waits`() async throws {
        try await withServer { server in
            let waiting = Waiting(server)
            #expect(waiting.session.deadline == nil)
            let endedAt = Instant.now
            waiting.endStream()
            let deadline = try #require(waiting.session.deadline)
            #expect(deadline >= endedAt.advanced(by: server.project.limits.writeTimeout))
        }
    }

    @Test func `Many frames that open the connection's window are told as one`() async throws {
        try await withServer { server in
            let waiting = Waiting(server)
            #expect(!waiting.session.maySendMessage(stream: 1))
            let update = Frame(type: RawHTTP2.windowUpdate, payload: RawHTTP2.bigEndian(1, 4))
            // All of them are in one piece of the input.
            #expect(waiting.openings(Array(repeating: update, count: 200)) == 1)
            #expect(waiting.openings([update]) == 1)
        }
    }
}
