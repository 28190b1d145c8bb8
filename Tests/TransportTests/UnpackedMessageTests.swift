import Base
import Reactor
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Transport

/// An unpacked message is a thousand times as large as what its client sent. It is freed as soon as its call has begun:
/// a tenant's connections may wait long for their next turns, and there are thousands of them.
@Suite struct UnpackedMessageTests {
    /// A MiB of zeros, compressed by gzip -n.
    private static let packed: [UInt8] =
        [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xed, 0xc1, 0x31, 0x01, 0x00, 0x00,
            0x00, 0xc2, 0xa0, 0xf5, 0x4f, 0x6d, 0x08, 0x5f, 0xa0,
        ] + [UInt8](repeating: 0, count: 1016) + [
            0x3e, 0x03, 0x1c, 0xea, 0x38, 0xa7, 0x00, 0x00, 0x10, 0x00,
        ]

    static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8]) -> [UInt8] {
        let byteCount = [0, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        return byteCount + [type, flags, 0, 0, 0, stream] + payload
    }

    /// The HEADERS of a call.
    static func headers(_ stream: UInt8) -> [UInt8] {
        let fields = [
            (":method", "POST"), (":scheme", "http"), (":path", "/test.Service/Echo"), (":authority", "localhost"),
            ("te", "trailers"), ("content-type", "application/grpc"), ("grpc-encoding", "gzip"),
        ]
        // HPACK literals that no table keeps (RFC 7541 §6.2.2), each shorter than 127 bytes.
        var block: [UInt8] = []
        for (name, value) in fields {
            block += [0, UInt8(name.utf8.count)]
            block += name.utf8
            block.append(UInt8(value.utf8.count))
            block += value.utf8
        }
        let endHeaders: UInt8 = 4
        return frame(1, flags: endHeaders, stream: stream, block)
    }

    /// A message with its prefix.
    static func message(_ content: [UInt8], isPacked: Bool) -> [UInt8] {
        [isPacked ? 1 : 0, 0, 0, UInt8(content.count >> 8), UInt8(content.count & 255)] + content
    }

    /// A call with one message, which is packed or not: HEADERS and DATA.
    private static func call(_ stream: UInt8, _ content: [UInt8], isPacked: Bool) -> [UInt8] {
        let endStream: UInt8 = 1
        return headers(stream) + frame(0, flags: endStream, stream: stream, message(content, isPacked: isPacked))
    }

    @Test func `A connection that waits for its next turn keeps no unpacked message`() async throws {
        let calls = SlowCalls()
        try await LoopServer.run(calls) { server in
            let (client, theirs) = try RawClient.pair()
            server.server.adopt(theirs)
            let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Self.frame(4, [])
            // The first call shows the credential that allows a message of this size.
            try client.send(
                preface + Self.call(1, [], isPacked: false) + Self.call(3, Self.packed, isPacked: true))
            try await until { calls.seen.withLock { $0.count } == 2 }
            let seen = calls.seen.withLock { $0 }
            #expect(seen.map { $0.requestByteCount } == [0, 1 << 20])
            #expect(seen.map { $0.keptByteCount } == [0, 0])
            client.close()
        }
    }
}

/// Each call takes more than the time of a connection in one turn, so that the rest waits for another turn. Before that
/// turn, it is noted what the session keeps.
private final class SlowCalls: Dispatcher {
    let seen = Mutex<[(requestByteCount: Int, keptByteCount: Int)]>([])

    func makeConnectionContext() -> AnyObject { self }

    func authenticate(_ authorization: Text, on connection: isolated Connection) {}

    func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        connection.authenticated(line: Echo.line)
        let end = Instant.now.advanced(by: .milliseconds(5))
        while Instant.now < end {}
        let requestByteCount = request.payload.count
        let loop = connection.loop
        loop.run { [self, connection] in
            let kept = connection.assumeIsolated { ($0.session as? GRPCSession)?.unpacked.capacity ?? -1 }
            seen.withLock { $0.append((requestByteCount, kept)) }
        }
        connection.respond(stream: stream, metadata: OutgoingMetadata()) { _ in }
    }
}
