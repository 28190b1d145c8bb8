import Base
import Glibc
import Outbound
import TestSupport
import Testing

/// Requests to `openssl s_server`, with a certificate of the test's own.
@Suite struct HTTPTLSTests {
    private func run(_ arguments: [String], in directory: String) throws {
        let status = try ChildProcess("openssl", arguments, output: "\(directory)/said").wait()
        let said = readFile("\(directory)/said") ?? []
        try #require(status == 0, "openssl \(arguments[0]): \(String(decoding: said, as: UTF8.self))")
    }

    /// A certificate for localhost and a server that answers with its own state page.
    private func withTLSServer(
        _ serverArguments: [String] = [], _ body: (_ port: Int, _ certificate: String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (key, certificate) = ("\(directory)/key.pem", "\(directory)/certificate.pem")
            try run(
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days",
                    "2",
                ], in: directory)
            let arguments = ["s_server", "-accept", "127.0.0.1:0", "-key", key, "-cert", certificate, "-www"]
            let server = try ChildProcess("openssl", arguments + serverArguments, output: "\(directory)/server")
            defer { server.kill() }
            let port = try #require(try listeningPort("\(directory)/server"))
            try await body(port, certificate)
        }
    }

    /// The port in the line that s_server prints once it listens: "ACCEPT 127.0.0.1:12345".
    private func listeningPort(_ file: String) throws -> Int? {
        for _ in 0..<2_000 {
            let lines = String(decoding: readFile(file) ?? [], as: UTF8.self).split(separator: "\n")
            if let line = lines.first(where: { $0.hasPrefix("ACCEPT") }) {
                return line.split(separator: ":").last.flatMap { Int($0) }
            }
            usleep(5_000)
        }
        return nil
    }

    private func get(_ client: HTTPClient, _ url: String) async throws -> HTTPAnswer {
        let policy = NetworkPolicy(allowsPrivateAddresses: true)
        let request = HTTPRequest(try #require(HTTPURL(Text(url))), policy: policy)
        return try await client.send(request, tenant: "t", deadline: .soon)
    }

    @Test func aTrustedCertificateForTheNameIsTaken() async throws {
        try await withTLSServer { port, certificate in
            try await withClient(certificateFile: certificate) { client, _ in
                let answer = try await get(client, "https://localhost:\(port)/")
                #expect(answer.status == 200)
            }
        }
    }

    @Test func aCertificateForAnotherNameIsNot() async throws {
        try await withTLSServer { port, certificate in
            try await withClient(certificateFile: certificate) { client, _ in
                let error = await outboundError { _ = try await get(client, "https://127.0.0.1:\(port)/") }
                #expect(error == .untrusted)
            }
        }
    }

    @Test func aCertificateTheSystemDoesNotKnowIsNot() async throws {
        try await withTLSServer { port, _ in
            try await withClient { client, _ in
                let error = await outboundError { _ = try await get(client, "https://localhost:\(port)/") }
                #expect(error == .untrusted)
            }
        }
    }

    @Test func anOldVersionOfTLSIsNot() async throws {
        try await withTLSServer(["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]) { port, certificate in
            try await withClient(certificateFile: certificate) { client, _ in
                let error = await outboundError { _ = try await get(client, "https://localhost:\(port)/") }
                #expect(error == .untrusted)
            }
        }
    }

    @Test func aServerWithoutTLSIsNot() async throws {
        try await withClient { client, server in
            let error = await outboundError { _ = try await get(client, "https://localhost:\(server.port)/") }
            #expect(error == .untrusted)
        }
    }
}
