import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// All templates of a tenant together have a bound: each of them is checked on an event loop, and each mail reads them.
@Suite struct EmailTemplatesLimitTests {
    /// A template of this many bytes.
    private static func template(_ byteCount: Int, locale: Text = "de") -> EmailTemplate {
        let rest = byteCount - locale.byteCount - "Neu".utf8.count - 2 * "%LINK%".utf8.count
        return EmailTemplate(
            requestType: .passwordReset, locale: locale, subject: "Neu", text: "%LINK%",
            html: Text("%LINK%" + String(repeating: "x", count: rest)))
    }

    private static func locale(_ number: Int) -> Text { Text("x-\(number)") }

    @Test func `Templates up to the limit are taken and one byte more is refused`() async throws {
        try await withServer(configure: { $0.limits.emailTemplatesBytesMax = 1_000 }) { server in
            let client = try IdentityClient(server)
            func set(_ templates: [EmailTemplate]) throws {
                try client.configureMail(["templates"]) { $0.templates = templates }
            }
            let first = Self.template(400, locale: "fr")
            try set([first, Self.template(600)])
            let refused = failure { try set([first, Self.template(601)]) }
            #expect(refused.reason == "INVALID_TEMPLATE" && refused.violations.first?.field == "config.templates")
            // Nothing of a template was looked at: this one has a placeholder that does not exist.
            var wrong = Self.template(700)
            wrong.text = "%NOT%"
            let unread = failure { try set([wrong, first]) }
            #expect(unread.reason == "INVALID_TEMPLATE" && unread.violations == refused.violations)
            #expect(try server.project.emailConfigs.get(tenantID: .empty).templates.count == 2)
        }
    }

    @Test func `The limit is 256 KiB`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            // A frame of that size is only taken from a caller who is known.
            _ = try client.signUp("ada@example.com")
            func set(_ count: Int) throws {
                try client.configureMail(["templates"]) {
                    $0.templates = (0..<count).map { Self.template(32_768, locale: Self.locale($0)) }
                }
            }
            try set(8)
            expectRefusal("INVALID_TEMPLATE") { try set(9) }
        }
    }

    @Test func `A larger configuration from before the limit goes on working`() async throws {
        try await withServer(configure: { $0.limits.emailTemplatesBytesMax = 1_000 }) { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let templates = [Self.template(900, locale: .empty), Self.template(900)]
            try await server.project.store.write { transaction in
                try transaction.put(
                    Tables.emailConfigs, TenantPrefix(.empty),
                    StoredEmailConfig(config: EmailConfig(delivery: .outbox, templates: templates)))
            }
            try client.sendOob(.passwordReset, email: "ada@example.com")
            #expect(try client.mails().first?.contents.subject == "Neu")
            try client.configureMail(["reply_to"]) { $0.replyTo = "help@example.com" }
            try client.configureMail(["action_url"]) { $0.actionURL = "https://app.example.com" }
            try client.configureMail(["reply_to", "templates"]) {
                $0.replyTo = "more@example.com"
                $0.templates = templates
            }
            let kept = try server.project.emailConfigs.get(tenantID: .empty)
            #expect(kept.templates == templates && kept.replyTo == "more@example.com")
            expectRefusal("INVALID_TEMPLATE") {
                try client.configureMail(["templates"]) { $0.templates = [templates[1], templates[0]] }
            }
            try client.configureMail(["templates"]) { $0.templates = [templates[0]] }
        }
    }
}
