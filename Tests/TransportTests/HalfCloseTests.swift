import Base
import Glibc
import Messages
import TestSupport
import Testing
import Wire

@testable import Transport

/// A client that only stopped sending gets what it is owed.
@Suite struct HalfCloseTests {
    private static let count = 100

    /// The server has more to send than the kernel takes, and has been told to end the connection.
    @Test func `What was written before a connection had to end is sent after a half-close`() async throws {
        try await LoopServer.run { server in
            let (client, theirs) = try RawClient.pair()
            // The kernel takes as little as it can.
            var byteCount: Int32 = 1
            setsockopt(theirs, SOL_SOCKET, SO_SNDBUF, &byteCount, socklen_t(MemoryLayout<Int32>.size))
            server.server.adopt(theirs)
            _ = try client.hello()
            // With a credential more may wait.
            let _: WireKeyValue = try client.call(Echo.echo, WireKeyValue(key: "first"))
            let text = Text(String(repeating: "x", count: 1_000))
            var bytes = (0..<Self.count).flatMap { _ in
                client.request(Echo.echo, WireKeyValue(key: text), stream: client.nextStream())
            }
            var tooLong = ByteBuffer()
            FrameHeader(payloadByteCount: .max, stream: client.nextStream(), type: .request).append(to: &tooLong)
            bytes += tooLong.copyBytes()
            try server.whileHeld {
                try client.send(bytes)
                client.closeForWriting()
            }
            // Both ends of the input have been seen when the other connection has been served twice.
            for _ in 0..<2 {
                let (other, itsEnd) = try RawClient.pair()
                server.server.adopt(itsEnd)
                let _: WireKeyValue = try other.call(Echo.echo, WireKeyValue(key: "other"))
            }
            let frames = try client.readUntilClosed()
            #expect(frames.filter { $0.header.type == .response }.count == Self.count)
            #expect(frames.last?.header.type == .goAway)
        }
    }
}
