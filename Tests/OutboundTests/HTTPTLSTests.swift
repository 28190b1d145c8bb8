import Base
import Glibc
import Outbound
import Reactor
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
            try await serve(key, certificate, serverArguments, in: directory) { try await body($0, certificate) }
        }
    }

    private func serve(
        _ key: String, _ certificate: String, _ serverArguments: [String] = [], in directory: String,
        _ body: (_ port: Int) async throws -> Void
    ) async throws {
        let arguments = ["s_server", "-accept", "127.0.0.1:0", "-key", key, "-cert", certificate, "-www"]
        let server = try ChildProcess("openssl", arguments + serverArguments, output: "\(directory)/server")
        defer { server.kill() }
        try await until("openssl s_server listens") { listeningPort("\(directory)/server") != nil }
        try await body(try #require(listeningPort("\(directory)/server")))
    }

    /// The port in the line that s_server prints once it listens: "ACCEPT 127.0.0.1:12345".
    private func listeningPort(_ file: String) -> Int? {
        let lines = String(decoding: readFile(file) ?? [], as: UTF8.self).split(separator: "\n")
        let line = lines.first { $0.hasPrefix("ACCEPT") }
        return line?.split(separator: ":").last.flatMap { Int($0) }
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

    /// A client that has the directory of the system's certificates looks there for the issuer, and opens the file with
    /// the issuer's name. The server's certificate has the name of a certificate that the system trusts.
    @Test func `Certificates from a file are trusted instead of the system's`() async throws {
        guard let trusted = Self.certificateOfTheSystem() else {
            return print("no directory of certificates here: a certificate file is not compared with it")
        }
        try await withTLSServer { _, ownCertificate in
            try await withTemporaryDirectory { directory in
                let (key, namesake) = ("\(directory)/key.pem", "\(directory)/namesake.pem")
                let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
                try run(["genpkey", "-out", key] + curve, in: directory)
                try run(["x509", "-in", trusted, "-signkey", key, "-days", "2", "-out", namesake], in: directory)
                // The server itself must not look for the issuer.
                let isolation = ["-no-CAfile", "-no-CApath", "-no-CAstore"]
                try await serve(key, namesake, isolation, in: directory) { port in
                    let watch = try OpeningWatch(trusted)
                    // To show that the watch sees it: a client that has the directory.
                    let look = ["s_client", "-connect", "127.0.0.1:\(port)", "-no-CAfile", "-no-CAstore"]
                    _ = try ChildProcess("openssl", look + ["-CApath", Self.directoryOfTheSystem]).wait()
                    try #require(watch.wasOpened())
                    try await withClient(certificateFile: ownCertificate) { client, _ in
                        let error = await outboundError { _ = try await get(client, "https://localhost:\(port)/") }
                        #expect(error == .untrusted)
                    }
                    #expect(!watch.wasOpened())
                }
            }
        }
    }

    /// The directory that Debian's libcurl has built in.
    private static let directoryOfTheSystem = "/etc/ssl/certs"

    /// One of the certificates that OpenSSL finds by the hash of their names.
    private static func certificateOfTheSystem() -> String? {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob("\(directoryOfTheSystem)/*.0", 0, nil, &found) == 0 else { return nil }
        return found.gl_pathv?[0].map { String(cString: $0) }
    }

    /// To read the certificates takes longer than a mail.
    @Test func `The certificates that a mail server is held to are read once`() async throws {
        try await withTLSServer { port, certificate in
            let pool = WorkerPool(name: "mail", workers: 1, queueMax: 16, queueMaxPerTenant: 16)
            defer { end(pool) }
            // The server is none for mail, so each mail ends with its time.
            var times = SMTPTimes()
            times.send = .milliseconds(500)
            let smtp = SMTPClient(pool: OutboundPool(pool), certificateFile: certificate, times: times)
            let server = SMTPServer(
                host: "localhost", port: try #require(UInt16(exactly: port)), security: .tls, username: .empty,
                password: .empty, policy: .ownServers(allowPrivateAddresses: true))
            let watch = try OpeningWatch(certificate)
            for isFirst in [true, false] {
                let mail = Secret(Array("Subject: hello\r\n\r\nhello\r\n".utf8))
                var error: SMTPError?
                do {
                    try await smtp.send(
                        mail, from: "a@example.com", to: "b@example.com", through: server, tenant: "t",
                        deadline: .soon)
                } catch let failure as SMTPError {
                    error = failure
                }
                #expect(error != nil && error != .transient(code: 0, .untrusted))
                #expect(watch.wasOpened() == isFirst)
            }
        }
    }

    /// Closing may block a test's thread for a moment.
    private func end(_ pool: WorkerPool) { pool.close() }

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
