import Base
import Messages
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

    /// With TLS the certificate binds the name. In clear text, whoever has the name's DNS chooses the machine.
    @Test func `An allowance for private addresses is not one for clear text`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func smtp(_ security: SmtpSecurity, username: Text = .empty) -> SmtpConfig {
                SmtpConfig(host: "mail.acme.example", port: 25, security: security, username: username)
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
}
