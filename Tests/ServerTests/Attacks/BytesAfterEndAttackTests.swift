import Base
import Messages
import TestSupport
import Testing
import Wire

/// The server is a process of its own, because nothing else could end a loop that stands still.
@Suite struct BytesAfterEndAttackTests {
    /// The connection is about to close, and the session holds bytes that nobody will take.
    @Test func `Bytes after the end of a TLS stream stop no loop`() throws {
        try withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            let port = try CrashTests.freePort()
            let files = [
                "--tls-certificate-file", certificates.certificateFile, "--tls-key-file", certificates.keyFile,
            ]
            let server = try CrashTests.start(directory, port, settings: files)
            defer { server.kill() }
            let configuration = try certificates.clientConfiguration()
            var bytes = ByteBuffer()
            bytes.appendHello(WireHello(protocolVersion: 1, software: "raw"))
            // A frame that only servers send, which the server answers with GOAWAY.
            FrameHeader(payloadByteCount: 0, stream: 1, type: .response).append(to: &bytes)
            let violation = bytes.copyBytes()
            for _ in 0..<4 {
                let client = try TLSClient(port: port, configuration, timeoutSeconds: 10)
                try client.sendAndEnd(violation, andThen: [0])
                // The server's HELLO and its GOAWAY.
                #expect(try client.receiveAll().count > FrameHeader.byteCount)
            }
        }
    }
}
