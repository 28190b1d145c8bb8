import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// Texts longer than anything needs are refused before anything is computed over them; no other caller notices.
@Suite struct OversizeAttackTests {
    /// Asks on a connection of its own, as another client would.
    private static func expectAlive(_ server: TestServer, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let canary = try server.connect()
        let info: ProjectServerInfoResponse = try canary.call(
            "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
        #expect(!info.projectID.isEmpty, sourceLocation: sourceLocation)
    }

    private static let oversizes = [1_025, 65_536, (1 << 20) - 37, 1 << 20, (1 << 20) + 1, 4_000_000]

    @Test(arguments: oversizes, [false, true])
    func aMailServersPasswordIsRefusedBeforeItIsSealed(byteCount: Int, validateOnly: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let config = EmailConfig(
                smtp: SmtpConfig(
                    host: "mail.example.com", port: 587, security: .starttls, username: "acme",
                    password: Secret([UInt8](repeating: 0x61, count: byteCount))))
            expectRefusal("INVALID_SMTP_SERVER") {
                let _: EmailConfigsUpdateResponse = try client.client.call(
                    "postern.v1.EmailConfigs/Update",
                    EmailConfigsUpdateRequest(
                        config: config, updateMask: ProtobufFieldMask(paths: ["smtp"]), validateOnly: validateOnly))
            }
            try Self.expectAlive(server)
        }
    }

    @Test(arguments: [257] + oversizes, [false, true])
    func aWebhooksSecretIsRefusedBeforeItIsSealed(byteCount: Int, validateOnly: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let config = EmailConfig(
                webhook: WebhookConfig(
                    url: "https://a.example", signingSecret: Secret([UInt8](repeating: 0x61, count: byteCount))))
            expectRefusal("INVALID_WEBHOOK") {
                let _: EmailConfigsUpdateResponse = try client.client.call(
                    "postern.v1.EmailConfigs/Update",
                    EmailConfigsUpdateRequest(
                        config: config, updateMask: ProtobufFieldMask(paths: ["webhook"]), validateOnly: validateOnly))
            }
            try Self.expectAlive(server)
        }
    }

    @Test func theLongestMailServersPasswordIsTaken() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let password = Secret([UInt8](repeating: 0x61, count: 1_024))
            try client.configureMail(["smtp"]) {
                $0.smtp = SmtpConfig(
                    host: "mail.example.com", port: 587, security: .starttls, username: "acme", password: password)
            }
            let stored = try server.project.emailConfigs.get(tenantID: .empty)
            #expect(stored.smtp?.hasPassword == true)
        }
    }

    // MARK: What a mail is made of

    /// A URL of 2,048 bytes at the action page's own host.
    private static let longURL = Text("https://issuer.test/" + String(repeating: "?", count: 2_048 - 20))

    private static func template(html: String) -> EmailTemplate {
        EmailTemplate(requestType: .passwordReset, subject: "Reset", text: "%LINK%", html: Text(html))
    }

    /// Unlimited, 510 bytes of placeholders made half a megabyte of each mail; 4,681 of them a text too long to seal.
    @Test(arguments: [
        String(repeating: "%LINK%", count: 85), String(repeating: "%LINK%", count: 5_461),
        "%LINK%" + String(repeating: "%DISPLAY_NAME%", count: 2_300),
        "%LINK%" + String(repeating: "x", count: 32_000)
            + String(repeating: "%APP_NAME%", count: 70),
    ])
    func aTemplateThatMultipliesItsPlaceholdersIsRefused(html: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            for validateOnly in [true, false] {
                expectRefusal("INVALID_TEMPLATE") {
                    let _: EmailConfigsUpdateResponse = try client.client.call(
                        "postern.v1.EmailConfigs/Update",
                        EmailConfigsUpdateRequest(
                            config: EmailConfig(templates: [Self.template(html: html)]),
                            updateMask: ProtobufFieldMask(paths: ["templates"]), validateOnly: validateOnly))
                }
            }
            try Self.expectAlive(server)
        }
    }

    /// The longest template with the links a mail needs, and everything in it as long as it can be.
    @Test func whatATemplateMayBeMakesNoMailAboveTheLimit() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let html = "<a href=\"%LINK%\">%DISPLAY_NAME%</a>" + String(repeating: "%LINK%", count: 1)
            try client.configureMail(["templates"]) {
                $0.templates = [Self.template(html: html + String(repeating: "x", count: 32_768 - html.utf8.count))]
            }
            try client.setTenant(["display_name"]) { $0.displayName = Text(String(repeating: "\"", count: 256)) }
            let uid = try client.signUp("ada@example.com").user!.uid
            try client.update(uid, ["display_name"]) { $0.displayName = Text(String(repeating: "\"", count: 256)) }
            try client.sendOob(.passwordReset, email: "ada@example.com", continueURL: Self.longURL)
            let mail = try #require(try client.mails().first)
            let byteCount =
                mail.contents.subject.byteCount + mail.contents.text.byteCount + mail.contents.html.byteCount
            #expect((32_768...65_536).contains(byteCount), "\(byteCount)")
            #expect(mail.contents.html.string.hasPrefix("<a href="))
        }
    }

    /// A template from before there was a limit: the mail goes out with our built-in text.
    @Test func aMailIsNeverLostToItsTemplate() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let config = EmailConfig(
                delivery: .outbox, templates: [Self.template(html: String(repeating: "%LINK%", count: 5_461))])
            try await server.project.store.write { transaction in
                try transaction.put(
                    Tables.emailConfigs, TenantPrefix(.empty), StoredEmailConfig(config: config))
            }
            try client.sendOob(.passwordReset, email: "ada@example.com", continueURL: Self.longURL)
            let mail = try #require(try client.mails().first)
            #expect(mail.contents.html.byteCount <= 65_536 && mail.contents.html.contains("<p>Hello,</p>"))
            #expect(!mail.code.isEmpty)
            // Other settings can be changed while such a template is stored.
            try client.configureMail(["reply_to"]) { $0.replyTo = "help@example.com" }
            try Self.expectAlive(server)
        }
    }

    @Test func aLanguageIsATag() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            func send(_ byteCount: Int) throws {
                let _: AccountsSendOobCodeResponse = try client.client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(
                        requestType: .passwordReset, email: "ada@example.com",
                        locale: Text(String(repeating: "x", count: byteCount))))
            }
            try send(35)
            for byteCount in [36, 65_536, 4_000_000] { expectRefusal("INVALID_LOCALE") { try send(byteCount) } }
        }
    }

    @Test func claimsToExplainAreNoLongerThanATokensMayBe() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = client.pendingToken(.google())
            func explain(_ claims: String) throws {
                let _: UsersExplainLinkResponse = try client.client.call(
                    "postern.v1.Users/ExplainLink",
                    UsersExplainLinkRequest(providerID: "google.com", claimsJSON: [UInt8](claims.utf8)))
            }
            let head = "{\"sub\":\"1\",\"x\":\""
            try explain(head + String(repeating: "x", count: 16_384 - head.utf8.count - 2) + "\"}")
            expectRefusal("INVALID_CLAIMS") {
                try explain(head + String(repeating: "x", count: 16_384 - head.utf8.count - 1) + "\"}")
            }
            let many = (0..<300_000).map { "\"c\($0)\":1" }.joined(separator: ",")
            expectRefusal("INVALID_CLAIMS") { try explain("{\"sub\":\"1\",\(many)}") }
        }
    }
}
