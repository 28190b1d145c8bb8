import Base
import Glibc
import TLS
import TestSupport
import Testing

@testable import Transport

/// What a server with TLS refuses to every client: the requests are openssl's.
@Suite struct TLSAttackTests {
    /// Runs openssl s_client with `input`, and returns its output.
    private static func connect(_ server: TLSServer, _ options: String, input: String = "sleep 0.5") throws -> String {
        let output = "\(server.certificates.directory)/output"
        let command =
            "(\(input)) | timeout 20 openssl s_client -connect 127.0.0.1:\(server.port) "
            + "-CAfile \(server.certificates.authorityFile) \(options)"
        let process = try ChildProcess("bash", ["-c", command], output: output)
        _ = process.wait(seconds: 30)
        return String(decoding: readFile(output) ?? [], as: UTF8.self)
    }

    /// The server counts a failure just after it has told the client.
    private static func untilFailed(_ count: UInt64, _ server: TLSServer) async throws {
        try await until("handshakes fail") { server.tls.metrics.handshakesFailed.value == count }
    }

    @Test(arguments: ["-tls1", "-tls1_1", "-tls1_2"])
    func `Old versions are refused`(version: String) async throws {
        try await TLSServer.run { server in
            let said = try Self.connect(server, "\(version) -cipher ALL:@SECLEVEL=0", input: "true")
            #expect(said.contains("Cipher is (NONE)"))
            #expect(said.contains("alert protocol version"), "\(said)")
            try await Self.untilFailed(1, server)
        }
    }

    @Test(arguments: ["-tls1", "-tls1_1"])
    func `Older versions than 1_2 are refused whatever is set`(version: String) async throws {
        try await TLSServer.run(configure: { settings, _ in settings.minimumVersion = .tls12 }) { server in
            let said = try Self.connect(server, "\(version) -cipher ALL:@SECLEVEL=0", input: "true")
            #expect(said.contains("Cipher is (NONE)"))
            try await Self.untilFailed(1, server)
        }
    }

    @Test(arguments: [
        "NULL", "aNULL", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA256",
        "ECDHE-ECDSA-AES128-CCM8", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-DES-CBC3-SHA", "PSK", "CAMELLIA",
    ])
    func `Weak ciphers of 1_2 are refused`(cipher: String) async throws {
        try await TLSServer.run(configure: { settings, _ in settings.minimumVersion = .tls12 }) { server in
            let said = try Self.connect(server, "-tls1_2 -cipher \(cipher):@SECLEVEL=0", input: "true")
            #expect(!said.contains("Protocol  : TLSv1.2\n    Cipher    : ECDHE"), "\(said)")
            #expect(server.tls.metrics.handshakes.value == 0)
        }
    }

    @Test func `1_2 is spoken with a good cipher, and not renegotiated`() async throws {
        try await TLSServer.run(configure: { settings, _ in settings.minimumVersion = .tls12 }) { server in
            let said = try Self.connect(server, "-tls1_2", input: "sleep 1; echo R; sleep 3")
            #expect(said.contains("Cipher is ECDHE-ECDSA"), "\(said)")
            #expect(said.contains("Secure Renegotiation IS supported"))
            #expect(said.contains("no renegotiation"), "\(said)")
            #expect(server.tls.metrics.handshakes.value == 1)
        }
    }

    @Test func `There are no tickets, no resumption and no early data`() async throws {
        for version in ["-tls1_3", "-tls1_2"] {
            try await TLSServer.run(configure: { settings, _ in settings.minimumVersion = .tls12 }) { server in
                let session = "\(server.certificates.directory)/session"
                let first = try Self.connect(server, "\(version) -sess_out \(session)")
                #expect(first.contains("Verify return code: 0 (ok)"), "\(first)")
                #expect(!first.contains("New Session Ticket arrived") && !first.contains("TLS session ticket:"))
                writeFile("\(server.certificates.directory)/early", [UInt8]("early".utf8))
                let early = version == "-tls1_3" ? "-early_data \(server.certificates.directory)/early" : ""
                let second = try Self.connect(server, "\(version) -sess_in \(session) \(early)")
                #expect(!second.contains("Reused") && !second.contains("Early data was accepted"), "\(second)")
            }
        }
    }

    @Test func `A protocol that is not ours is refused in the handshake`() async throws {
        try await TLSServer.run { server in
            let (other, ours) = (
                try Self.connect(server, "-alpn http/1.1", input: "true"), try Self.connect(server, "-alpn postern/1")
            )
            #expect(other.contains("no application protocol"), "\(other)")
            #expect(ours.contains("ALPN protocol: postern/1"))
            let none = try Self.connect(server, "")
            #expect(none.contains("No ALPN negotiated"))
        }
    }

    /// openssl takes two lines that come together for one, so it may send fewer of them.
    @Test(arguments: [(16, false), (100, true)])
    func `A flood of KeyUpdates ends its connection`(count: Int, endsIt: Bool) async throws {
        try await TLSServer.run { server in
            _ = try Self.connect(
                server, "-tls1_3", input: "sleep 0.5; for i in $(seq \(count)); do echo K; sleep 0.02; done; sleep 0.5")
            #expect(server.tls.metrics.handshakes.value == 1)
            if endsIt { try await until("the session fails") { server.tls.metrics.sessionsFailed.value > 0 } }
            #expect(server.tls.metrics.sessionsFailed.value == (endsIt ? 1 : 0))
        }
    }

    @Test func `A group or signature that is too weak is refused`() async throws {
        try await TLSServer.run { server in
            _ = try Self.connect(server, "-groups P-521", input: "true")
            _ = try Self.connect(server, "-groups ffdhe2048", input: "true")
            _ = try Self.connect(server, "-sigalgs ECDSA+SHA1:RSA+SHA1 -cipher ALL:@SECLEVEL=0", input: "true")
            #expect(server.tls.metrics.handshakes.value == 0)
        }
    }
}
