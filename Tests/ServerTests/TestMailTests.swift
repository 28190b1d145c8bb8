import Base
import JSON
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// EmailConfigs.Test and PreviewTemplate: what a mail would say, and whether it arrives.
@Suite struct TestMailTests {
    private static func test(
        _ client: RawClient, _ to: Text = "ops@example.com", tenant: Text = .empty
    ) throws -> EmailConfigsTestResponse {
        try client.call("postern.v1.EmailConfigs/Test", EmailConfigsTestRequest(tenantID: tenant, to: to))
    }

    private static func withMailServer(
        _ options: [String] = [], _ body: (MailServer, IdentityClient) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let mailServer = try MailServer(directory, port: try CrashTests.freePort(), options)
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: mailServer.port)
                try await body(mailServer, client)
            }
        }
    }

    @Test func `A test mail arrives, with words of the server's, and is an event`() async throws {
        try await Self.withMailServer { mailServer, client in
            let answer = try Self.test(client.client)
            #expect(answer.ok && answer.delivery == .smtp && answer.message == "the mail was taken")
            let mails = try mailServer.mails()
            #expect(mails.count == 1 && mails.first?["to"] == .array([.string("ops@example.com")]))
            #expect(mails.first?["subject"]?.text == "Test of mail delivery")
            #expect(mails.first?["text"]?.text?.contains("An administrator asked for this mail") == true)
            // A test mail does not go through the outbox.
            let outbox: OutboxListResponse = try client.client.call("postern.v1.Outbox/List", OutboxListRequest())
            #expect(outbox.messages.isEmpty)
            let events: AuditListEventsResponse = try client.client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(filter: EventFilter(kinds: [.emailConfigTested])))
            #expect(events.events.map(\.detail) == ["smtp"])
        }
    }

    @Test func `What a mail server refuses is told with its code, and is no failed call`() async throws {
        try await Self.withMailServer(["--refuse", "550"]) { mailServer, client in
            let answer = try Self.test(client.client)
            #expect(!answer.ok && answer.message == "the mail server refused it with 550")
            try client.deliverBySMTP(port: 1)
            let nobody = try Self.test(client.client)
            #expect(!nobody.ok && nobody.message == "the mail server: no connection to it")
            #expect(try mailServer.mails().isEmpty)
        }
    }

    @Test func `What a mail server puts off is told with its code`() async throws {
        try await Self.withMailServer(["--refuse", "451"]) { _, client in
            let answer = try Self.test(client.client)
            #expect(!answer.ok && answer.message == "the mail server put it off with 451")
        }
    }

    @Test func `Where mail stays in the outbox nothing is sent`() async throws {
        try await withServer { server in
            let answer = try Self.test(try server.connect())
            #expect(!answer.ok && answer.delivery == .outbox && answer.message.string.contains("outbox"))
        }
    }

    @Test func `Neither strangers nor a mailbox get many, and no other tenant pays for it`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            try server.makeTenant("beta")
            let acme = try server.client(as: .tenantAdmin, of: "acme")
            for _ in 0..<5 { _ = try Self.test(acme, tenant: "acme") }
            expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try Self.test(acme, tenant: "acme") }
            for number in 0..<5 { _ = try Self.test(acme, Text("o\(number)@example.com"), tenant: "acme") }
            let refused = failure { _ = try Self.test(acme, "another@example.com", tenant: "acme") }
            #expect(refused.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(refused.retryAfter.map { $0 > .minutes(5) && $0 <= .minutes(6) } == true)
            _ = try Self.test(try server.client(as: .tenantAdmin, of: "beta"), tenant: "beta")
            server.clock.advance(by: .hours(1))
            _ = try Self.test(acme, tenant: "acme")
        }
    }

    @Test func `A recipient is one address, and a tenant-admin reaches no private address by it`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            expectRefusal("MISSING_EMAIL") { _ = try Self.test(admin, "", tenant: "acme") }
            for wrong in ["ops", "a@x.com,b@x.com", "a@x.com>\r\nRCPT TO:<b@x.com", "@", "a@b@c.com"] as [Text] {
                expectRefusal("INVALID_EMAIL", "\(wrong)") { _ = try Self.test(admin, wrong, tenant: "acme") }
            }
            let config = EmailConfig(
                delivery: .smtp, smtp: SmtpConfig(host: "127.0.0.1", port: 22, security: .starttls),
                senderAddress: "no-reply@example.com")
            expectRefusal("INVALID_SMTP_SERVER") {
                let _: EmailConfigsUpdateResponse = try admin.call(
                    "postern.v1.EmailConfigs/Update",
                    EmailConfigsUpdateRequest(
                        tenantID: "acme", config: config,
                        updateMask: ProtobufFieldMask(paths: ["delivery", "smtp", "sender_address"])))
            }
            // Such a server could be set by an earlier version.
            try await server.project.store.write { transaction in
                try transaction.put(Tables.emailConfigs, TenantPrefix("acme"), StoredEmailConfig(config: config))
            }
            // The text is the same as that of a message that waits in the outbox.
            #expect(
                try Self.test(admin, tenant: "acme").message
                    == "the mail server: its address is not public, which needs allow_private_addresses")
        }
    }

    private static func preview(
        _ client: RawClient, _ type: OobRequestType = .unspecified, locale: Text = .empty,
        _ template: EmailTemplate? = nil
    ) throws -> EmailConfigsPreviewTemplateResponse {
        try client.call(
            "postern.v1.EmailConfigs/PreviewTemplate",
            EmailConfigsPreviewTemplateRequest(requestType: type, locale: locale, template: template))
    }

    @Test func `A preview is what the mail would say, in the tenant's words or ours`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let own = try Self.preview(client.client, .passwordReset)
            #expect(!own.fromTemplate && own.text.contains("oobCode=EXAMPLE") && own.html.contains("oobCode=EXAMPLE"))
            let german = EmailTemplate(
                requestType: .passwordReset, locale: "de", subject: "Passwort von %EMAIL%", text: "Hier: %LINK%",
                html: "<p>%DISPLAY_NAME%: %LINK%</p>")
            try client.configureMail(["templates"]) { $0.templates = [german] }
            let swiss = try Self.preview(client.client, .passwordReset, locale: "de-CH")
            #expect(swiss.fromTemplate && swiss.subject == "Passwort von ada@example.com")
            #expect(swiss.text.string.hasPrefix("Hier: http") && swiss.html.string.hasPrefix("<p>Ada Example: http"))
            #expect(try !Self.preview(client.client, .passwordReset, locale: "fr").fromTemplate)
            // Nobody has a name there: neither the made-up user, nor the tenant.
            try client.setTenant(["display_name"]) { $0.displayName = "Acme" }
            let named = EmailTemplate(
                requestType: .passwordReset, subject: "%APP_NAME%", text: "Hi %DISPLAY_NAME%, %LINK%", html: "%LINK%")
            func shown(withoutNames: Bool) throws -> [Text] {
                let answer: EmailConfigsPreviewTemplateResponse = try client.client.call(
                    "postern.v1.EmailConfigs/PreviewTemplate",
                    EmailConfigsPreviewTemplateRequest(template: named, withoutNames: withoutNames))
                return [answer.subject, Text(unchecked: Array(answer.text.bytes.prefix(8)))]
            }
            #expect(try shown(withoutNames: false) == ["Acme", "Hi Ada E"])
            #expect(try shown(withoutNames: true) == ["", "Hi , htt"])
            // A template that is not stored yet, with the second link that such mail always has.
            let draft = EmailTemplate(
                requestType: .verifyEmail, subject: "s", text: "%LINK%", html: "%LINK%")
            let drafted = try Self.preview(client.client, .unspecified, draft)
            #expect(drafted.fromTemplate && drafted.text.contains("mode=rejectEmail"))
            // A link of a preview does nothing.
            expectRefusal("INVALID_OOB_CODE") {
                let _: AccountsCheckOobCodeResponse = try client.client.call(
                    "postern.v1.Accounts/CheckOobCode", AccountsCheckOobCodeRequest(oobCode: Secret("EXAMPLE")))
            }
        }
    }

    @Test func `A preview refuses what could not be set`() async throws {
        try await withServer { server in
            let client = try server.connect()
            func template(_ type: OobRequestType, _ text: Text) -> EmailTemplate {
                EmailTemplate(requestType: type, subject: "s", text: text, html: "%LINK%")
            }
            for type in [OobRequestType.unspecified, .rejectEmail] {
                expectRefusal("MISSING_REQ_TYPE") { _ = try Self.preview(client, type) }
                expectRefusal("MISSING_REQ_TYPE") {
                    _ = try Self.preview(client, .verifyEmail, template(type, "%LINK%"))
                }
            }
            let tooLong = Text(String(repeating: "x", count: 8_200) + "%LINK%")
            for text in ["no link", "%LINK% %CODE%", tooLong] as [Text] {
                expectRefusal("INVALID_TEMPLATE") {
                    _ = try Self.preview(client, .unspecified, template(.passwordReset, text))
                }
            }
            let long = Text(String(repeating: "x", count: 36))
            expectRefusal("INVALID_LOCALE") { _ = try Self.preview(client, .passwordReset, locale: long) }
        }
    }
}
