import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// Who may let a tenant's mail go to private addresses, and for what that holds.
@Suite struct PrivateMailServerTests {
    @Test func onlyAProjectAdminLetsATenantReachPrivateAddresses() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID(""))))
            admin.apiKey = made.secretKey
            let refused = failure {
                let _: EmailConfigsUpdateResponse = try admin.call(
                    "postern.v1.EmailConfigs/Update",
                    EmailConfigsUpdateRequest(
                        config: EmailConfig(delivery: .outbox, allowPrivateAddresses: true),
                        updateMask: ProtobufFieldMask(paths: ["allow_private_addresses"])))
            }
            #expect(refused.reason == "INSUFFICIENT_PERMISSION")
        }
    }

    /// With TLS the certificate binds the name.
    @Test func `An allowance for private addresses is not one for clear text`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func smtp(_ security: SmtpSecurity, username: Text = .empty) -> SmtpConfig {
                SmtpConfig(host: "localhost", port: 25, security: security, username: username)
            }
            try client.configureMail(["smtp", "allow_private_addresses"]) {
                $0.smtp = smtp(.starttls)
                $0.allowPrivateAddresses = true
            }
            let made: ProjectCreateApiKeyResponse = try client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID(""))))
            client.client.apiKey = made.secretKey
            try client.configureMail(["smtp"]) { $0.smtp = smtp(.starttls, username: "acme") }
            for security in [SmtpSecurity.none, .tls] {
                expectRefusal("INSUFFICIENT_PERMISSION") {
                    try client.configureMail(["smtp"]) { $0.smtp = smtp(security) }
                }
            }
        }
    }

    /// Whoever has a name's DNS could choose the machine that gets the clear text.
    @Test func `Clear text goes to no host whose name is looked up`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func set(_ host: Text, _ security: SmtpSecurity) throws {
                try client.configureMail(["smtp", "allow_private_addresses"]) {
                    $0.smtp = SmtpConfig(host: host, port: 25, security: security)
                    $0.allowPrivateAddresses = true
                }
            }
            for host in ["localhost", "a.LocalHost", "127.0.0.1", "127.0.0.2", "::1"] as [Text] {
                try set(host, .none)
            }
            for host in ["mail.acme.example", "localhost.example", "127.0.0.1.example", "10.0.0.1"] as [Text] {
                expectRefusal("INVALID_SMTP_SERVER", "\(host)") { try set(host, .none) }
                try set(host, .starttls)
            }
        }
    }

    @Test func `A name for clear text that an earlier server took gets no mail, and does not stop other changes`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            let config = EmailConfig(
                delivery: .smtp, smtp: SmtpConfig(host: "mail.acme.example", port: 25, security: .none),
                senderAddress: "no-reply@example.com", allowPrivateAddresses: true)
            try await server.project.store.write { transaction in
                try transaction.put(Tables.emailConfigs, TenantPrefix(""), StoredEmailConfig(config: config))
            }
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let waiting = try await client.newestMail { $0.attempts == 1 }
            #expect(waiting.state == .pending && waiting.lastError.string.contains("localhost or a loopback address"))
            try client.configureMail(["sender_name"]) { $0.senderName = "Acme" }
            expectRefusal("INVALID_SMTP_SERVER") {
                try client.configureMail(["allow_private_addresses"]) { $0.allowPrivateAddresses = true }
            }
        }
    }
}
