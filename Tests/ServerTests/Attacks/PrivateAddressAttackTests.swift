import Base
import Messages
import TestSupport
import Testing

/// A tenant-admin points the server at the operator's network, by an allowance that was given for another host.
@Suite struct PrivateAddressAttackTests {
    private static func update(_ client: RawClient, _ paths: [Text], _ config: EmailConfig) throws {
        let _: EmailConfigsUpdateResponse = try client.call(
            "postern.v1.EmailConfigs/Update",
            EmailConfigsUpdateRequest(config: config, updateMask: ProtobufFieldMask(paths: paths)))
    }

    private static func smtp(_ host: Text, port: Int32 = 587, username: Text = .empty) -> SmtpConfig {
        SmtpConfig(host: host, port: port, security: .starttls, username: username)
    }

    private static func webhook(_ url: Text) -> WebhookConfig {
        WebhookConfig(url: url, signingSecret: Secret([UInt8](repeating: 7, count: 32)))
    }

    @Test func `An allowance for one mail server is for no other host, port or webhook`() async throws {
        try await withServer { server in
            let admin = try server.client(as: .tenantAdmin, of: "")
            try Self.update(
                try server.connect(), ["smtp", "allow_private_addresses"],
                EmailConfig(smtp: Self.smtp("mail.internal"), allowPrivateAddresses: true))
            let aimed: [(paths: [Text], config: EmailConfig)] = [
                (["smtp"], EmailConfig(smtp: Self.smtp("10.0.0.1"))),
                (["smtp"], EmailConfig(smtp: Self.smtp("mail.internal", port: 6_379))),
                (["smtp"], EmailConfig(smtp: Self.smtp("127.0.0.1"))),
                (["webhook"], EmailConfig(webhook: Self.webhook("https://10.0.0.1/admin"))),
                (
                    ["smtp", "allow_private_addresses"],
                    EmailConfig(smtp: Self.smtp("10.0.0.1"), allowPrivateAddresses: true)
                ),
            ]
            for (paths, config) in aimed {
                let refused = failure { try Self.update(admin, paths, config) }
                #expect(refused.reason == "INSUFFICIENT_PERMISSION", "\(config)")
                #expect(refused.metadata("required_role") == "project-admin")
            }
            // Settings of the same host may change, and an admin who gives up the allowance may choose another host.
            try Self.update(admin, ["smtp"], EmailConfig(smtp: Self.smtp("mail.internal", username: "acme")))
            try Self.update(admin, ["sender_name"], EmailConfig(senderName: "Acme"))
            try Self.update(
                admin, ["smtp", "webhook", "allow_private_addresses"],
                EmailConfig(smtp: Self.smtp("mail.example.com"), webhook: Self.webhook("https://example.com/mail")))
            expectRefusal("INSUFFICIENT_PERMISSION") {
                try Self.update(admin, ["allow_private_addresses"], EmailConfig(allowPrivateAddresses: true))
            }
            try Self.update(
                try server.connect(), ["allow_private_addresses"], EmailConfig(allowPrivateAddresses: true))
            expectRefusal("INSUFFICIENT_PERMISSION") {
                try Self.update(
                    admin, ["webhook"], EmailConfig(webhook: Self.webhook("https://other.example.com/mail")))
            }
        }
    }

    @Test func `An allowance for a provider is for the endpoints it was given for`() async throws {
        try await withServer { server in
            let admin = try server.client(as: .tenantAdmin, of: "")
            var provider = Provider(providerID: "oidc.intranet", clientID: "client", issuer: "https://sso.internal")
            provider.allowPrivateAddresses = true
            let _: ProvidersCreateResponse = try server.connect().call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider))
            func update(_ paths: [Text], _ fill: (inout Provider) -> Void) throws {
                var wanted = Provider(providerID: "oidc.intranet")
                fill(&wanted)
                let _: ProvidersUpdateResponse = try admin.call(
                    "postern.v1.Providers/Update",
                    ProvidersUpdateRequest(provider: wanted, updateMask: ProtobufFieldMask(paths: paths)))
            }
            let aimed: [(path: Text, set: (inout Provider) -> Void)] = [
                ("issuer", { $0.issuer = "https://10.0.0.1" }),
                ("endpoints", { $0.endpoints = ProviderEndpoints(token: "https://10.0.0.1/token") }),
                ("endpoints.discovery", { $0.endpoints = ProviderEndpoints(discovery: "https://10.0.0.1/d") }),
                ("endpoints.jwks", { $0.endpoints = ProviderEndpoints(jwks: "https://10.0.0.1/jwks") }),
                ("endpoints.token", { $0.endpoints = ProviderEndpoints(token: "https://10.0.0.1/token") }),
                ("endpoints.user_info", { $0.endpoints = ProviderEndpoints(userInfo: "https://10.0.0.1/me") }),
                ("allow_http_loopback", { $0.allowHTTPLoopback = true }),
            ]
            for (path, set) in aimed { expectRefusal("INSUFFICIENT_PERMISSION", "\(path)") { try update([path], set) } }
            try update(["display_name"]) { $0.displayName = "Intranet" }
            try update(["allow_private_addresses", "issuer"]) { $0.issuer = "https://sso.example.com" }
        }
    }
}
