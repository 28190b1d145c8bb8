import Base
import Glibc
import Synchronization
import TLS
import TestSupport
import Testing

@testable import Transport

/// Client certificates: which of them end the handshake, and whom the others name. The odd ones are made by
/// Tests/Fixtures/odd-certificates.py, and shown by openssl.
@Suite struct ClientCertificateTests {
    /// The files of Tests/Fixtures/odd-certificates.py, by their names; made once for all tests.
    private static let files: Result<[String: [UInt8]], any Error> = Result {
        try withTemporaryDirectory { directory -> [String: [UInt8]] in
            let script = #filePath.replacing(
                "TransportTests/ClientCertificateTests.swift", with: "Fixtures/odd-certificates.py")
            let said = "\(directory)/said"
            let maker = try ChildProcess("/usr/bin/python3", [script, directory], output: said)
            #expect(maker.wait(seconds: 60) == 0, "\(String(decoding: readFile(said) ?? [], as: UTF8.self))")
            var files: [String: [UInt8]] = [:]
            for name in try DirectoryNames.list(directory) { files[name] = readFile("\(directory)/\(name)") }
            return files
        }
    }

    private static func withServer(
        revocations: Bool = false,
        _ body: (TLSServer, _ connect: (_ kind: String) throws -> String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { odd in
            for (name, bytes) in try files.get() { writeFile("\(odd)/\(name)", bytes) }
            try await TLSServer.run(
                configure: { settings, _ in
                    settings.clientCAFile = "\(odd)/ca.pem"
                    if revocations { settings.clientCRLFile = "\(odd)/crl.pem" }
                }
            ) { server in
                try await body(server) { try connect(server, odd, $0) }
            }
        }
    }

    /// Runs openssl s_client until the server has judged its certificate; returns its output.
    private static func connect(_ server: TLSServer, _ odd: String, _ kind: String) throws -> String {
        let (input, output) = ("\(odd)/input", "\(odd)/output")
        // The client ends with its input, which this process keeps open.
        if access(input, F_OK) != 0 { #expect(mkfifo(input, 0o600) == 0) }
        let end = open(input, O_RDWR | O_CLOEXEC)
        let certificate =
            kind.isEmpty ? "" : "-cert \(odd)/\(kind).pem -cert_chain \(odd)/\(kind).pem -key \(odd)/\(kind)-key.pem"
        let command =
            "timeout 20 openssl s_client -connect 127.0.0.1:\(server.port) "
            + "-CAfile \(server.certificates.authorityFile) -cipher ALL:@SECLEVEL=0 \(certificate) <\(input)"
        let metrics = server.tls.metrics
        func judgedCount() -> UInt64 { metrics.handshakes.value + metrics.handshakesFailed.value }
        let before = judgedCount()
        let process = try ChildProcess("bash", ["-c", command], output: output)
        try blockUntil("the server has judged the client: \(String(decoding: readFile(output) ?? [], as: UTF8.self))") {
            judgedCount() > before
        }
        close(end)
        _ = process.hasEnded ? process.endStatus : process.wait(seconds: 30)
        return String(decoding: readFile(output) ?? [], as: UTF8.self)
    }

    /// Waits until the server has named so many clients: it does so just after it has counted the handshake.
    private static func untilNamed(_ count: Int, by server: TLSServer) async throws {
        try await until("\(count) clients are named") { server.echo.identified.withLock { $0.count } >= count }
    }

    @Test(arguments: [
        "expired", "not-yet", "self-signed", "other-authority", "for-servers", "for-anything", "is-authority", "sha1",
        "below-leaf", "chain-8", "chain-100", "large",
    ])
    func `A certificate that is no good ends the handshake`(kind: String) async throws {
        try await Self.withServer { server, connect in
            let said = try connect(kind)
            #expect(server.tls.metrics.handshakes.value == 0, "\(said)")
            #expect(server.tls.metrics.handshakesFailed.value == 1, "\(said)")
            #expect(server.echo.identified.withLock { $0.isEmpty })
            // Other clients are served as before.
            _ = try server.client()
        }
    }

    @Test func `A certificate need not be shown, and a good one names its holder`() async throws {
        try await Self.withServer { server, connect in
            _ = try connect("")
            #expect(server.tls.metrics.handshakes.value == 1)
            #expect(server.echo.identified.withLock { $0.isEmpty })
            let said = try connect("good")
            #expect(server.tls.metrics.handshakes.value == 2, "\(said)")
            try await Self.untilNamed(1, by: server)
            let named = server.echo.identified.withLock { $0 }
            #expect(named.map(\.name) == [.uri("spiffe://example.org/mailer")])
            #expect(named.first?.issuerKeyHash.count == 32)
        }
    }

    @Test func `A revoked certificate ends the handshake, and one that is not goes on`() async throws {
        try await Self.withServer(revocations: true) { server, connect in
            for kind in ["revoked", "below-revoked"] {
                let said = try connect(kind)
                #expect(server.tls.metrics.handshakes.value == 0, "\(kind): \(said)")
            }
            _ = try connect("good")
            _ = try connect("below-authority")
            #expect(server.tls.metrics.handshakes.value == 2)
        }
    }

    /// The names in these certificates; none is "the mailer" of the good one.
    @Test func `Only the exact name in the subjectAltName counts`() async throws {
        try await Self.withServer { server, connect in
            let kinds: [(String, PeerCertificate.Name?)] = [
                ("common-name", nil), ("two-uris", nil), ("nul", nil), ("homoglyph", nil),
                ("other-name", .uri("spiffe://example.org/other")), ("upper-case", .uri("SPIFFE://EXAMPLE.ORG/MAILER")),
                ("trailing-dot", .uri("spiffe://example.org/mailer.")), ("wildcard", .uri("spiffe://example.org/*")),
                ("as-dns", .dns("spiffe://example.org/mailer")),
            ]
            for (index, kind) in kinds.enumerated() {
                _ = try connect(kind.0)
                try await Self.untilNamed(kinds[...index].compactMap(\.1).count, by: server)
            }
            #expect(server.tls.metrics.handshakes.value == UInt64(kinds.count))
            #expect(server.echo.identified.withLock { $0.map(\.name) } == kinds.compactMap(\.1))
        }
    }
}
