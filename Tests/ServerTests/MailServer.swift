import Base
import Glibc
import Identity
import JSON
import Messages
import TestSupport
import Testing

/// aiosmtpd in a process of its own (Tests/Fixtures/smtp_receiver.py).
struct MailServer {
    let process: ChildProcess
    let port: UInt16
    let file: String

    /// `options` as the script takes them.
    init(_ directory: String, port: UInt16, _ options: [String] = []) throws {
        self.port = port
        self.file = "\(directory)/mails-\(port)"
        let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
        let script = "/\(folder)/Fixtures/smtp_receiver.py"
        process = try ChildProcess(
            "/usr/bin/python3", [script, "\(port)", file] + options, output: "\(directory)/smtp")
        try blockUntil("the mail server takes connections (no python3-aiosmtpd? run tools/bootstrap --tests)") {
            (try? RawClient(port: port)) != nil
        }
    }

    func mails() throws -> [JSONValue] {
        try (readFile(file) ?? []).split(separator: 0x0A).map { try JSONValue(parsing: Array($0)) }
    }
}

/// A port that accepts connections and never sends a byte; `close` resets them.
struct SilentServer {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        (descriptor, port) = boundSocket()
        try #require(listen(descriptor, 64) == 0)
    }

    func close() { _ = Glibc.close(descriptor) }
}

extension IdentityClient {
    func configureMail(tenantID: Text = .empty, _ paths: [Text], _ change: (inout EmailConfig) -> Void) throws {
        var config = EmailConfig()
        change(&config)
        let _: EmailConfigsUpdateResponse = try client.call(
            "postern.v1.EmailConfigs/Update",
            EmailConfigsUpdateRequest(tenantID: tenantID, config: config, updateMask: ProtobufFieldMask(paths: paths)))
    }

    /// `username` counts only with a password.
    func deliverBySMTP(
        port: UInt16, security: SmtpSecurity = .none, senderName: Text = "Ünïcode, \"Inc\" <x>",
        password: Text = .empty, username: Text = "postern"
    ) throws {
        try configureMail(["delivery", "smtp", "sender_name", "sender_address", "allow_private_addresses"]) {
            $0.delivery = .smtp
            $0.smtp = SmtpConfig(
                host: "127.0.0.1", port: Int32(port), security: security,
                username: password.isEmpty ? .empty : username, password: Secret(password.bytes))
            $0.senderName = senderName
            $0.senderAddress = "no-reply@example.com"
            $0.allowPrivateAddresses = true
        }
    }

    func deliverByWebhook(
        tenantID: Text = .empty, url: String, secret: Secret = Secret([UInt8](repeating: 7, count: 32))
    ) throws {
        try configureMail(tenantID: tenantID, ["delivery", "webhook", "allow_private_addresses"]) {
            $0.delivery = .webhook
            $0.webhook = WebhookConfig(url: Text(url), signingSecret: secret)
            $0.allowPrivateAddresses = true
        }
    }

    /// Waits until `isTrue` of the newest message; the mailer works on its own.
    @discardableResult
    func newestMail(_ isTrue: (OutboxMessage) -> Bool) async throws -> OutboxMessage {
        var message = OutboxMessage()
        try await until("the message is as it should be: \(message)") {
            await server.project.mailer.deliverDue()
            let listed: OutboxListResponse = try client.call("postern.v1.Outbox/List", OutboxListRequest())
            message = listed.messages.first ?? OutboxMessage()
            return isTrue(message)
        }
        return message
    }

    @discardableResult
    func newestMail(becomes state: OutboxState) async throws -> OutboxMessage {
        try await newestMail { $0.state == state }
    }
}
