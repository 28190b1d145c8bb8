import Base
import Crypto
import Glibc
import Identity
import JSON
import Messages
import Reactor
import Service
import Store
import Synchronization
import TestSupport
import Testing

/// The delivery of mail to a mail server and a webhook that are real programs of their own.
@Suite struct MailDeliveryTests {
    // MARK: The mail server

    @Test func aMailReachesItsMailboxOnceAndWhole() async throws {
        try await withTemporaryDirectory { directory in
            let mailServer = try MailServer(directory, port: try CrashTests.freePort())
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.setTenant(["display_name"]) { $0.displayName = "Zürich App" }
                try client.deliverBySMTP(port: mailServer.port)
                _ = try client.signUp("ada@example.com")
                try client.sendOob(.passwordReset, email: "ada@example.com")
                let sent = try await client.newestMail(becomes: .sent)
                #expect(sent.attempts == 1 && sent.lastError.isEmpty)
                let mails = try mailServer.mails()
                #expect(mails.count == 1)
                let mail = try #require(mails.first)
                #expect(mail["from"]?.text == "no-reply@example.com")
                #expect(mail["subject"]?.text == "Reset your password for Zürich App")
                #expect(mail["sender"]?.text?.string.contains("no-reply@example.com") == true)
                #expect(mail["message_id"]?.text == Text("<\(sent.messageID)@example.com>"))
                let contents = try #require(try client.mails().first).contents
                #expect(mail["text"]?.text?.string.contains(contents.link.string) == true)
                #expect(mail["html"]?.text?.string.contains("&amp;oobCode=") == true)
                #expect((mail["longest_line"]?.integer ?? 999) <= 78)
                // Nothing is due any more.
                await server.project.mailer.deliverDue()
                #expect(try mailServer.mails().count == 1)
            }
        }
    }

    @Test func aStoppedMailServerLosesNoMessage() async throws {
        try await withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: port)
                _ = try client.signUp("ada@example.com")
                try client.sendOob(.passwordReset, email: "ada@example.com")
                var waiting = OutboxMessage()
                try await until("a delivery was tried") {
                    await server.project.mailer.deliverDue()
                    waiting = try #require(try client.mails().first).message
                    return waiting.attempts > 0
                }
                #expect(waiting.state == .pending && waiting.attempts == 1)
                #expect(waiting.lastError == "the mail server: no connection to it")
                #expect(waiting.nextAttemptAtMicros > server.clock.clock.now().microseconds)
                let mailServer = try MailServer(directory, port: port)
                server.clock.advance(by: .seconds(40))
                let sent = try await client.newestMail(becomes: .sent)
                #expect(sent.messageID == waiting.messageID && sent.attempts == 2)
                #expect(try mailServer.mails().count == 1)
            }
        }
    }

    @Test func aRestartGoesOnWithWhatWaits() async throws {
        try await withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let store = "\(directory)/store"
            mkdir(store, 0o700)
            let key = try await withServer(directory: store, clock: clock, masterKey: masterKey) { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: port)
                _ = try client.signUp("ada@example.com")
                try client.sendOob(.passwordReset, email: "ada@example.com")
                return server.adminKey
            }
            let mailServer = try MailServer(directory, port: port)
            clock.advance(by: .minutes(30))
            try await withServer(directory: store, clock: clock, masterKey: masterKey, adminKey: key) { server in
                _ = try await IdentityClient(server).newestMail(becomes: .sent)
            }
            #expect(try mailServer.mails().count == 1)
        }
    }

    @Test func whatIsRefusedForGoodIsDeadUntilItIsRetried() async throws {
        try await withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            var refusing: MailServer? = try MailServer(directory, port: port, ["--refuse", "550"])
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: port)
                _ = try client.signUp("ada@example.com")
                try client.sendOob(.passwordReset, email: "ada@example.com")
                let dead = try await client.newestMail(becomes: .dead)
                #expect(dead.lastError == "the mail server refused it with 550" && dead.nextAttemptAtMicros == 0)
                let counts = server.project.mailer.counts
                try await until("the message is counted as given up") { counts.givenUp.value == 1 }
                #expect(counts.outcomes(of: .mail).refused.value == 1)
                refusing?.process.kill()
                refusing = nil
                let taking = try MailServer(directory, port: port)
                let _: OutboxRetryResponse = try client.client.call(
                    "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: dead.messageID))
                _ = try await client.newestMail(becomes: .sent)
                #expect(counts.outcomes(of: .mail).sent.value == 1)
                #expect(try taking.mails().count == 1)
                let again = failure {
                    let _: OutboxRetryResponse = try client.client.call(
                        "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: dead.messageID))
                }
                #expect(again.reason == "OUTBOX_MESSAGE_NOT_DELIVERABLE")
            }
        }
    }

    // MARK: The webhook

    @Test func aWebhookGetsSignedMailUntilItTakesIt() async throws {
        let secret = [UInt8]("0123456789abcdef0123456789abcdef".utf8)
        let seen = Mutex<[FakeHTTPServer.Request]>([])
        let receiver = FakeHTTPServer { request in
            let count = seen.withLock { seen in
                seen.append(request)
                return seen.count
            }
            return .response(HTTPResponse(status: count == 1 ? 503 : 204, body: []))
        }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.configureMail(["delivery", "webhook", "allow_private_addresses"]) {
                $0.delivery = .webhook
                $0.webhook = WebhookConfig(url: Text("\(receiver.url)/mail"), signingSecret: Secret(secret))
                $0.allowPrivateAddresses = true
            }
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            // The clock goes on once the refusal is stored, so that the next attempt is due by then.
            try await until("the mail was refused") { try client.mails().first?.message.attempts == 1 }
            server.clock.advance(by: .seconds(60))
            let sent = try await client.newestMail(becomes: .sent)
            #expect(sent.attempts == 2)
            let requests = seen.withLock { $0 }
            #expect(requests.count == 2)
            for request in requests {
                let body = try JSONValue(parsing: request.body)
                #expect(body["message_id"]?.text == sent.messageID)
                #expect(body["to"]?.text == "ada@example.com")
                #expect(body["link"]?.text?.string.contains("oobCode=") == true)
                let signature = request.fields["postern-signature"] ?? ""
                let time = signature.dropFirst(2).prefix { $0 != "," }
                let tag = HMACKey(Secret(secret)).tag(of: [UInt8]("\(time).".utf8) + request.body)
                #expect(signature == "t=\(time),v1=\(Hex.encode(tag))")
            }
        }
    }

    @Test func `A webhook whose secret cannot be opened gets nothing`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 204, body: [])) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            // As if it was sealed under another master key.
            try await server.project.store.write { transaction in
                let key = TenantPrefix("")
                var stored = try #require(try transaction.get(Tables.emailConfigs, key))
                stored.sealedWebhookSecret = [UInt8](repeating: 0, count: stored.sealedWebhookSecret.count)
                try transaction.put(Tables.emailConfigs, key, stored)
            }
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let waiting = try await client.newestMail { $0.attempts == 1 }
            #expect(waiting.state == .pending && waiting.lastError == "the webhook has no secret that can be opened")
            #expect(receiver.requestCount("/mail") == 0)
        }
    }

    // MARK: The configuration

    @Test func secretsAreNeverToldAndDoNotFollowToAnotherServer() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let password = Secret([UInt8]("smtp password".utf8))
            try client.configureMail(["smtp"]) {
                $0.smtp = SmtpConfig(
                    host: "mail.example.com", port: 587, security: .starttls, username: "u", password: password)
            }
            func get() throws -> EmailConfig {
                let found: EmailConfigsGetResponse = try client.client.call(
                    "postern.v1.EmailConfigs/Get", EmailConfigsGetRequest())
                return found.config ?? EmailConfig()
            }
            #expect(try get().smtp?.hasPassword == true)
            #expect(try get().smtp?.password.isEmpty == true)
            try client.configureMail(["smtp"]) {
                $0.smtp = SmtpConfig(host: "mail.example.com", port: 587, security: .starttls, username: "u")
            }
            #expect(try get().smtp?.hasPassword == true)
            try client.configureMail(["smtp"]) {
                $0.smtp = SmtpConfig(host: "evil.example.com", port: 587, security: .starttls, username: "u")
            }
            #expect(try get().smtp?.hasPassword == false)
            // The secrets do not lie open in the database either.
            let stored = try server.project.store.read { transaction in
                try transaction.get(Tables.emailConfigs, TenantPrefix(""))?.encoded() ?? []
            }
            #expect(stored.firstRange(of: [UInt8]("smtp password".utf8)) == nil)
        }
    }

    @Test func templatesSpeakTheUsersLanguageAndCannotBeBrokenOutOf() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.configureMail(["templates"]) {
                $0.templates = [
                    EmailTemplate(
                        requestType: .verifyEmail, locale: "de", subject: "Hallo %DISPLAY_NAME%",
                        text: "Bitte: %LINK% 100% %DISPLAY_NAME%", html: "<b>%DISPLAY_NAME%</b> %LINK%"),
                    EmailTemplate(
                        requestType: .verifyEmail, locale: "", subject: "Any", text: "%LINK%", html: "%LINK%"),
                ]
            }
            let made = try client.signUp("ada@example.com")
            try client.update(made.user!.uid, ["display_name"]) { $0.displayName = "<i>%EMAIL%" }
            for (locale, subject) in [("de-CH", "Hallo <i>%EMAIL%"), ("fr", "Any")] as [(Text, Text)] {
                let _: AccountsSendOobCodeResponse = try client.client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(
                        requestType: .verifyEmail, idToken: made.tokens!.idToken, locale: locale))
                let mail = try #require(try client.mails().first).contents
                #expect(mail.subject == subject)
                server.clock.advance(by: .milliseconds(1))
            }
            let german = try client.mails()[1].contents
            // Behind it comes the link "this was not me", which the template lacks.
            #expect(german.text.string.contains(" 100% <i>%EMAIL%\n\n"))
            #expect(german.html.string.hasPrefix("<b>&lt;i&gt;%EMAIL%</b> https://"))
        }
    }

    @Test(arguments: [
        ("%LINK%", "no link", "Subject", "INVALID_TEMPLATE"),
        ("%LINK%", "%LINK% %NOPE%", "Subject", "INVALID_TEMPLATE"),
        ("%LINK%", "%LINK%", "Two\r\nlines", "INVALID_TEMPLATE"), ("%LINK%", "%LINK%", "", "INVALID_TEMPLATE"),
        ("%LINK% 50%", "%LINK% 100%", "50% off", ""),
    ])
    func aTemplateThatCouldNotWorkIsRefused(_ text: Text, _ html: Text, _ subject: Text, _ reason: String) async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            let refused = failure {
                try client.configureMail(["templates"]) {
                    $0.templates = [
                        EmailTemplate(requestType: .verifyEmail, subject: subject, text: text, html: html)
                    ]
                }
            }
            #expect(refused.reason == reason)
        }
    }
}
