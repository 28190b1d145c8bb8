import Glibc
import TLS
import TestSupport
import Testing

/// A session between the two ends of a socket pair.
@Suite struct TLSSessionTests {
    /// Two established sessions. Both descriptors are non-blocking and belong to the caller.
    private static func sessions(
        _ certificates: TestCertificates, _ client: Int32, _ server: Int32
    ) throws -> (client: TLSSession, server: TLSSession) {
        let credential = try TLSCredential(
            certificatePEM: readFile(certificates.certificateFile) ?? [],
            keyPEM: readFile(certificates.keyFile) ?? [])
        let serverContext = try TLSContext(
            ServerTLSConfiguration(credential: credential, certificateListByteCountMax: 64 * 1024))
        let clientContext = try TLSContext(certificates.clientConfiguration())
        let ends = (
            client: try TLSSession(clientContext, descriptor: client, keyUpdateCountMax: 16),
            server: try TLSSession(serverContext, descriptor: server, keyUpdateCountMax: 16)
        )
        try ends.client.verifyServer(named: "localhost")
        for _ in 0..<10 where !ends.client.isEstablished || !ends.server.isEstablished {
            for end in [ends.client, ends.server] { #expect(Self.read(end) == .wantsRead) }
        }
        return ends
    }

    private static func read(_ session: TLSSession) -> TLSSession.Step {
        withUnsafeTemporaryAllocation(byteCount: 64 * 1024, alignment: 1) { buffer in
            guard let start = buffer.baseAddress else { return .wantsRead }
            return session.read(into: start, byteCount: buffer.count)
        }
    }

    /// A client that has written "hello", the socket under it, and the server, which has not read it.
    private static func afterHello(_ body: (TLSSession, Int32, TLSSession) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            var pair: [Int32] = [-1, -1]
            let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
            let code = socketpair(AF_UNIX, kind, 0, &pair)
            try #require(code == 0)
            defer { for descriptor in pair { close(descriptor) } }
            let (client, server) = try sessions(TestCertificates(in: directory), pair[0], pair[1])
            let written = [UInt8]("hello".utf8).withUnsafeBytes { client.write($0) }
            #expect(written == .bytes(5))
            try body(client, pair[0], server)
        }
    }

    /// A reader goes on while `hasPendingInput`, so that a session which keeps such bytes would occupy its loop for
    /// ever.
    @Test(arguments: [0, 1, 1_000])
    func `What comes after the peer's end is not input that waits`(byteCountAfter: Int) throws {
        try Self.afterHello { client, socket, server in
            client.sayEnd()
            let after = [UInt8](repeating: 0, count: byteCountAfter)
            let sentCount = send(socket, after, after.count, Int32(MSG_NOSIGNAL))
            #expect(sentCount == after.count)
            #expect(Self.read(server) == .bytes(5))
            #expect(server.hasPendingInput)
            #expect(Self.read(server) == .ended)
            #expect(!server.hasPendingInput)
        }
    }

    /// The head of a record is five bytes long, and tells that 16 KiB follow.
    @Test(arguments: [1, 5, 6, 1_000])
    func `A record that has not come whole takes memory`(byteCount: Int) throws {
        try Self.afterHello { _, socket, server in
            #expect(Self.read(server) == .bytes(5))
            #expect(server.heldByteCount == 0)
            let record: [UInt8] = [0x17, 3, 3, 0x40, 0] + Array(repeating: 0, count: 16_384)
            let sentCount = send(socket, record, byteCount, Int32(MSG_NOSIGNAL))
            #expect(sentCount == byteCount)
            #expect(Self.read(server) == .wantsRead)
            #expect(server.heldByteCount > 16 * 1024)
        }
    }
}
