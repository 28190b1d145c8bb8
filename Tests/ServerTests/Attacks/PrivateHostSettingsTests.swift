import Base
import Messages
import TestSupport
import Testing

/// A host that no connection may go to is refused when it is set, in every setting whose host the server calls.
@Suite struct PrivateHostSettingsTests {
    private static let privates: [Text] = [
        "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fd00::1]", "[::ffff:10.0.0.1]", "167772161",
        "0x0a000001", "012.0.0.1", "10.1", "127.0.0.1", "127.1", "2130706433", "[::1]", "localhost", "a.localhost",
    ]
    /// Never reached, whatever is allowed.
    private static let specials: [Text] = [
        "169.254.169.254", "2852039166", "[::ffff:169.254.169.254]", "0.0.0.0", "100.100.100.200", "1684301000",
        "168.63.129.16", "[fd00:ec2::254]", "[fd20:ce::254]",
    ]
    private static let publics: [Text] = ["8.8.8.8", "[2606:4700::1111]", "hooks.example", "10.0.0.1.example"]

    /// A setting with a host, and the refusal of a host that is not reached.
    private struct Setting {
        let name: String
        let reason: String
        /// Checks the change only, so that nothing is left of it.
        let set: (_ client: RawClient, _ host: Text, _ isAllowed: Bool) throws -> Void
    }

    private static let secret = Secret([UInt8](repeating: 7, count: 32))

    private static func webhook(_ host: Text) -> WebhookConfig {
        WebhookConfig(url: Text("https://\(host)/x"), signingSecret: secret)
    }

    private static func hook(_ field: Text, _ point: WritableKeyPath<HookConfig, Hook?>) -> Setting {
        Setting(name: "hook \(field)", reason: "INVALID_WEBHOOK") { client, host, isAllowed in
            var config = HookConfig(allowPrivateAddresses: isAllowed)
            config[keyPath: point] = Hook(webhook: webhook(host))
            let _: HookConfigsUpdateResponse = try client.call(
                "postern.v1.HookConfigs/Update",
                HookConfigsUpdateRequest(
                    config: config, updateMask: ProtobufFieldMask(paths: [field, "allow_private_addresses"]),
                    validateOnly: true))
        }
    }

    private static func mail(
        _ field: Text, _ reason: String, _ fill: @escaping (inout EmailConfig, Text) -> Void
    ) -> Setting {
        Setting(name: "mail \(field)", reason: reason) { client, host, isAllowed in
            var config = EmailConfig(allowPrivateAddresses: isAllowed)
            fill(&config, host)
            let _: EmailConfigsUpdateResponse = try client.call(
                "postern.v1.EmailConfigs/Update",
                EmailConfigsUpdateRequest(
                    config: config, updateMask: ProtobufFieldMask(paths: [field, "allow_private_addresses"]),
                    validateOnly: true))
        }
    }

    private static func sms() -> Setting {
        Setting(name: "SMS", reason: "INVALID_WEBHOOK") { client, host, isAllowed in
            let config = SmsConfig(webhook: webhook(host), allowPrivateAddresses: isAllowed)
            let _: SmsConfigsUpdateResponse = try client.call(
                "postern.v1.SmsConfigs/Update",
                SmsConfigsUpdateRequest(
                    config: config, updateMask: ProtobufFieldMask(paths: ["webhook", "allow_private_addresses"]),
                    validateOnly: true))
        }
    }

    private static func provider(
        _ field: String, _ reason: String, _ fill: @escaping (inout Provider, _ url: Text) -> Void
    ) -> Setting {
        Setting(name: "provider \(field)", reason: reason) { client, host, isAllowed in
            var provider = Provider(
                providerID: "oidc.corp", clientID: "shop", issuer: "https://id.corp.example",
                allowPrivateAddresses: isAllowed)
            fill(&provider, Text("https://\(host)/x"))
            let _: ProvidersCreateResponse = try client.call(
                "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider, validateOnly: true))
        }
    }

    private static func endpoint(_ field: String, _ path: WritableKeyPath<ProviderEndpoints, Text>) -> Setting {
        provider(field, "INVALID_ENDPOINT") { provider, url in
            var endpoints = ProviderEndpoints()
            endpoints[keyPath: path] = url
            provider.endpoints = endpoints
        }
    }

    private static func settings() -> [Setting] {
        [
            hook("before_create", \.beforeCreate), hook("before_sign_in", \.beforeSignIn), sms(),
            mail("webhook", "INVALID_WEBHOOK") { $0.webhook = webhook($1) },
            mail("smtp", "INVALID_SMTP_SERVER") { config, host in
                // A mail server's IPv6 address is written without brackets.
                let bytes = host.bytes.filter { $0 != UInt8(ascii: "[") && $0 != UInt8(ascii: "]") }
                config.smtp = SmtpConfig(host: Text(unchecked: bytes), port: 587, security: .starttls)
            },
            provider("issuer", "INVALID_ISSUER") { $0.issuer = $1 },
            endpoint("discovery", \.discovery), endpoint("jwks", \.jwks), endpoint("token", \.token),
            endpoint("user_info", \.userInfo), endpoint("token_check", \.tokenCheck),
        ]
    }

    @Test func `A host that no connection may go to is refused when it is set`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for setting in Self.settings() {
                func reason(_ host: Text, _ isAllowed: Bool) -> String {
                    failure { try setting.set(client, host, isAllowed) }.reason
                }
                for host in Self.privates {
                    #expect(reason(host, false) == setting.reason, "\(setting.name) \(host)")
                    #expect(reason(host, true) == "", "\(setting.name) \(host), allowed")
                }
                for host in Self.specials {
                    for isAllowed in [false, true] {
                        #expect(reason(host, isAllowed) == setting.reason, "\(setting.name) \(host) \(isAllowed)")
                    }
                }
                for host in Self.publics { #expect(reason(host, false) == "", "\(setting.name) \(host)") }
            }
        }
    }

    /// The server never calls this endpoint: a browser opens it, perhaps in a company's own network.
    @Test func `An authorization endpoint may be at a private address`() async throws {
        try await withServer { server in
            let setting = Self.endpoint("authorization", \.authorization)
            let client = try server.connect()
            for host in Self.privates { try setting.set(client, host, false) }
        }
    }

    @Test func `The allowance cannot be withdrawn while a host needs it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let allowance: Text = "allow_private_addresses"
            try client.configureMail(["smtp", allowance]) {
                $0.smtp = SmtpConfig(host: "10.0.0.1", port: 587, security: .starttls)
                $0.allowPrivateAddresses = true
            }
            expectRefusal("INVALID_SMTP_SERVER") { try client.configureMail([allowance]) { _ in } }
            try client.configureMail(["smtp", allowance]) {
                $0.smtp = SmtpConfig(host: "mail.example.com", port: 587, security: .starttls)
            }
        }
    }
}
