import Base
import Reactor
import TLS
import TestSupport
import Testing

@testable import Transport

/// The side port with TLS.
@Suite struct HTTPServerTLSTests {
    private static func withServer(
        configure: (inout ServerTLS.Settings) -> Void = { _ in }, limits: Limits = Limits(),
        _ body: (HTTPServer, ServerTLS, TestCertificates) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            var settings = ServerTLS.Settings(
                certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
            configure(&settings)
            let tls = try ServerTLS(settings, limits: limits, log: .silent)
            let loop = EventLoop(name: "http")
            let large = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
            let server = try HTTPServer(
                on: loop, at: .loopback(),
                routes: [
                    "/healthz": { HTTPResponse(body: Array("ok\n".utf8)) }, "/large": { HTTPResponse(body: large) },
                ],
                limits: limits, tls: tls)
            loop.start()
            defer {
                loop.stop()
                loop.join()
                server.close()
            }
            try body(server, tls, certificates)
        }
    }

    private static func curl(_ arguments: [String], _ directory: String) throws -> (status: Int32, said: String) {
        let output = "\(directory)/said"
        let process = try ChildProcess("curl", ["-sS", "-i", "--max-time", "20"] + arguments, output: output)
        return (process.wait(), String(decoding: readFile(output) ?? [], as: UTF8.self))
    }

    @Test func `Pages come over TLS, and in clear from this machine`() throws {
        // `isRequired` is about the RPC port alone.
        try Self.withServer(configure: { $0.isRequired = true }) { server, tls, certificates in
            let trust = ["--cacert", certificates.authorityFile]
            let page = try Self.curl(
                trust + ["https://localhost:\(server.port)/healthz"], certificates.directory)
            #expect(page.status == 0 && page.said.hasPrefix("HTTP/1.1 200") && page.said.hasSuffix("ok\n"))
            let large = try Self.curl(trust + ["https://localhost:\(server.port)/large"], certificates.directory)
            #expect(large.status == 0 && large.said.utf8.count > 1 << 20)
            let plain = try Self.curl(["http://localhost:\(server.port)/healthz"], certificates.directory)
            #expect(plain.status == 0 && plain.said.hasSuffix("ok\n"))
            #expect(tls.metrics.handshakes.value == 2)
        }
    }

    @Test func `A client that offers HTTP_2 alone, or old TLS, is refused`() throws {
        try Self.withServer { server, tls, certificates in
            for options in ["-alpn h2", "-tls1_1 -cipher ALL:@SECLEVEL=0"] {
                let command =
                    "timeout 20 openssl s_client -connect 127.0.0.1:\(server.port) "
                    + "-CAfile \(certificates.authorityFile) \(options) </dev/null"
                let output = "\(certificates.directory)/openssl"
                _ = try ChildProcess("bash", ["-c", command], output: output).wait(seconds: 30)
                #expect(String(decoding: readFile(output) ?? [], as: UTF8.self).contains("Cipher is (NONE)"))
            }
            // The server counts a failure just after it has told the client.
            try blockUntil("both handshakes have failed") { tls.metrics.handshakesFailed.value == 2 }
        }
    }

    @Test func `A handshake that does not go on is cut off, and gives way`() throws {
        var limits = Limits()
        limits.httpConnectionsPerAddressMax = 2
        try Self.withServer(limits: limits) { server, _, certificates in
            let halves = try (0..<6).map { _ in
                let raw = try RawClient(port: server.port)
                try raw.send([0x16, 3, 1, 1, 0, 1])
                return raw
            }
            let page = try Self.curl(
                ["--cacert", certificates.authorityFile, "https://localhost:\(server.port)/healthz"],
                certificates.directory)
            #expect(page.said.hasSuffix("ok\n"))
            // The end is a reset if the server has not read what came.
            do { #expect(try halves[0].receive(1).isEmpty) } catch RawClient.RawError.closed {}
        }
        limits.httpRequestTimeout = .milliseconds(500)
        try Self.withServer(limits: limits) { server, _, _ in
            let raw = try RawClient(port: server.port)
            try raw.send([0x16, 3, 1, 1, 0, 1])
            #expect(try raw.receive(1).isEmpty)
        }
    }
}
