import Base
import Glibc
import JSON
import Messages
import Service
import TestSupport
import Testing

/// Mail travels encrypted to a server that proves who it is, or not at all.
@Suite struct MailTransportTests {
    private static let password: Text = "p\u{E4}ssword, with: blanks"

    /// A key and a self-signed certificate for 127.0.0.1, in one file.
    private static func makeCertificate(in directory: String) throws -> String {
        let file = "\(directory)/mail.pem"
        let status = try ChildProcess(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file,
                "-out", file + ".crt", "-subj", "/CN=mail.test", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
            ], output: "\(directory)/openssl"
        ).wait()
        try #require(status == 0)
        writeFile(file, (readFile(file) ?? []) + (readFile(file + ".crt") ?? []))
        return file
    }

    /// A mail server with a certificate, and a Postern that trusts it or does not.
    private static func withMailServer(
        _ options: [String] = [], isTrusted: Bool = true, hasCertificate: Bool = true,
        _ body: (MailServer, IdentityClient) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let certificate = try makeCertificate(in: directory)
            let mailServer = try MailServer(
                directory, port: try CrashTests.freePort(),
                (hasCertificate ? ["--certificate", certificate] : []) + options)
            try await withServer(configure: { if isTrusted { $0.outboundCAFile = certificate } }) { server in
                let client = try IdentityClient(server)
                _ = try client.signUp("ada@example.com")
                try await body(mailServer, client)
            }
        }
    }

    private static let login = ["--login", "postern", password.string]

    @Test(arguments: [SmtpSecurity.starttls, .tls])
    func aMailGoesEncryptedAndAuthenticated(_ security: SmtpSecurity) async throws {
        try await Self.withMailServer(Self.login + (security == .tls ? ["--tls"] : [])) { mailServer, client in
            try client.deliverBySMTP(port: mailServer.port, security: security, password: Self.password)
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let sent = try await client.newestMail(becomes: .sent)
            #expect(sent.attempts == 1)
            let mail = try #require(try mailServer.mails().first)
            #expect(mail["is_encrypted"] == .bool(true) && mail["is_authenticated"] == .bool(true))
            #expect(mail["to"] == .array([.string("ada@example.com")]))
        }
    }

    /// libcurl prefers Kerberos where a server offers it and the user name has a domain, and fails without a ticket.
    @Test func `A server that also offers Kerberos gets user name and password`() async throws {
        let login = ["--kerberos", "--login", "postern@example.com", Self.password.string]
        try await Self.withMailServer(login) { mailServer, client in
            try client.deliverBySMTP(
                port: mailServer.port, security: .starttls, password: Self.password, username: "postern@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let sent = try await client.newestMail(becomes: .sent)
            #expect(sent.attempts == 1)
            #expect(try mailServer.mails().first?["is_authenticated"] == .bool(true))
        }
    }

    /// A server with an untrusted certificate, or without TLS, gets to see neither the mail nor the password.
    @Test(arguments: [
        (SmtpSecurity.starttls, [String](), true), (.tls, ["--tls"], true), (.starttls, [], false), (.tls, [], false),
    ])
    func aMailWaitsRatherThanGoToWhoCannotBeTrusted(
        _ security: SmtpSecurity, _ options: [String], _ hasCertificate: Bool
    ) async throws {
        try await Self.withMailServer(options, isTrusted: !hasCertificate, hasCertificate: hasCertificate) {
            mailServer, client in
            try client.deliverBySMTP(port: mailServer.port, security: security, password: Self.password)
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let waiting = try await client.newestMail { $0.attempts == 1 }
            #expect(waiting.state == .pending)
            #expect(waiting.lastError.string.hasPrefix("the mail server: it has no TLS, or its certificate"))
            #expect(waiting.nextAttemptAtMicros > client.server.clock.clock.now().microseconds)
            #expect(try mailServer.mails().isEmpty)
        }
    }

    @Test func aWrongPasswordLosesNoMail() async throws {
        try await Self.withMailServer(Self.login) { mailServer, client in
            try client.deliverBySMTP(port: mailServer.port, security: .starttls, password: "wrong")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let waiting = try await client.newestMail { $0.attempts == 1 }
            #expect(waiting.state == .pending)
            #expect(waiting.lastError == "the mail server does not take the user name and password")
            #expect(try mailServer.mails().isEmpty)
            try client.deliverBySMTP(port: mailServer.port, security: .starttls, password: Self.password)
            client.server.clock.advance(by: .seconds(60))
            let sent = try await client.newestMail(becomes: .sent)
            #expect(sent.messageID == waiting.messageID && sent.attempts == 2)
            #expect(try mailServer.mails().count == 1)
        }
    }

    /// RFC 6531: the address goes as it is, and the server is told so.
    @Test func anInternationalAddressGetsItsMail() async throws {
        try await Self.withMailServer(["--utf8"]) { mailServer, client in
            try client.setTenant(["allow_international_email"]) { $0.allowInternationalEmail = true }
            try client.deliverBySMTP(port: mailServer.port, security: .starttls)
            _ = try client.signUp("J\u{FC}rgen@example.com")
            try client.sendOob(.passwordReset, email: "j\u{FC}rgen@example.com")
            try await client.newestMail(becomes: .sent)
            let mail = try #require(try mailServer.mails().first)
            #expect(mail["is_utf8"] == .bool(true))
            #expect(mail["to"] == .array([.string("J\u{FC}rgen@example.com")]))
            #expect(mail["recipient_header"]?.text == "J\u{FC}rgen@example.com")
            // Mail to plain addresses does not ask for the extension.
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try await client.newestMail(becomes: .sent)
            #expect(try mailServer.mails().last?["is_utf8"] == .bool(false))
        }
    }

    @Test func aServerWithoutInternationalMailIsNotSentAny() async throws {
        try await Self.withMailServer { mailServer, client in
            try client.setTenant(["allow_international_email"]) { $0.allowInternationalEmail = true }
            try client.deliverBySMTP(port: mailServer.port, security: .starttls)
            _ = try client.signUp("j\u{FC}rgen@example.com")
            try client.sendOob(.passwordReset, email: "j\u{FC}rgen@example.com")
            let dead = try await client.newestMail(becomes: .dead)
            #expect(dead.lastError == "the mail server does not take international addresses (SMTPUTF8)")
            #expect(try mailServer.mails().isEmpty)
        }
    }
}
