import Base
import Crypto
import Glibc
import Identity
import JSON
import Messages
import Reactor
import Store
import Synchronization
import TestSupport
import Testing

@testable import Service

/// The delivery of SMS: held to be read, or posted to an adapter of a gateway.
@Suite struct SMSDeliveryTests {
    private static let number = PhoneSignInTests.number
    private static let secret = [UInt8]("0123456789abcdef0123456789abcdef".utf8)

    private static func deliver(_ client: IdentityClient, to receiver: FakeHTTPServer) throws {
        try client.configureSMS(["delivery", "webhook", "allow_private_addresses"]) {
            $0.delivery = .webhook
            $0.webhook = WebhookConfig(url: Text("\(receiver.url)/sms"), signingSecret: Secret(secret))
            $0.allowPrivateAddresses = true
        }
    }

    @Test func `Without a gateway a code is read in the outbox, and the event log says who read it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try client.sendCode(to: Self.number)
            let sms = try #require(try client.mails().first)
            #expect(sms.message.state == .held && sms.message.verificationPurpose == .signIn)
            #expect(sms.message.requestType == .unspecified && sms.message.to == Self.number)
            #expect(sms.contents.code.byteCount == 6 && sms.contents.text.string.hasPrefix(sms.contents.code.string))
            #expect(sms.message.expiresAtMicros == sms.message.createdAtMicros + 24 * 3_600_000_000)
        }
    }

    @Test func `A webhook gets a signed SMS until it takes it`() async throws {
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
            try client.allowPhones()
            try Self.deliver(client, to: receiver)
            try client.sendCode(to: Self.number)
            // The clock goes on once the refusal is stored, so that the next attempt is due by then.
            try await until("the SMS was refused") { try client.mails().first?.message.attempts == 1 }
            server.clock.advance(by: .seconds(6))
            let sent = try await client.newestMail { $0.state == .sent }
            #expect(sent.attempts == 2)
            let requests = seen.withLock { $0 }
            #expect(requests.count == 2 && requests[0].body == requests[1].body)
            let body = try JSONValue(parsing: requests[1].body)
            let code = try #require(try client.mails().first?.contents.code)
            #expect(body["channel"]?.text == "sms" && body["to"]?.text == Self.number && body["region"]?.text == "US")
            #expect(body["code"]?.text == code && body["message_id"]?.text == sent.messageID)
            let signature = try #require(requests[1].fields["postern-signature"])
            let time = signature.dropFirst(2).prefix { $0 != "," }
            let tag = Hex.encode(HMACKey(Secret(Self.secret)).tag(of: [UInt8]("\(time).".utf8) + requests[1].body))
            #expect(signature == "t=\(time),v1=\(tag)")
        }
    }

    @Test func `An SMS is given up when its code has expired`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 503, body: [])) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try Self.deliver(client, to: receiver)
            try client.sendCode(to: Self.number)
            try await until("the SMS was refused") { try client.mails().first?.message.attempts == 1 }
            server.clock.advance(by: .minutes(5))
            let dead = try await client.newestMail { $0.state == .dead }
            #expect(dead.lastError == "its code has expired")
            expectRefusal("OUTBOX_MESSAGE_NOT_DELIVERABLE") {
                let _: OutboxRetryResponse = try client.client.call(
                    "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: dead.messageID))
            }
        }
    }

    @Test func `An SMS does not wait for its tenant's mails whose server hangs`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 204, body: [])) }
        defer { receiver.close() }
        let silent = try SilentServer()
        try await withServer { server in
            // Closing the server at the end breaks off the waiting deliveries at once.
            defer { silent.close() }
            let client = try IdentityClient(server)
            try client.allowPhones(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try client.deliverBySMTP(port: silent.port)
            try Self.deliver(client, to: receiver)
            for number in 0..<16 { try client.sendOob(.emailSignin, email: Text("user\(number)@example.com")) }
            let pool = server.instance.outboundPool
            try await until("mails hang") { pool.counts.running >= 2 }
            try client.sendCode(to: Self.number)
            try await until("the SMS is sent past mails that hang") { receiver.requestCount("/sms") == 1 }
            // None of the mails has ended yet.
            let mails = try client.mails().filter { $0.message.requestType == .emailSignin }
            #expect(mails.count == 16 && mails.allSatisfy { $0.message.attempts == 0 })
        }
    }

    @Test func `An SMS that an older server queued is sent, too`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 204, body: [])) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try client.sendCode(to: Self.number)
            let id = try #require(try client.mails().first).message.messageID
            try Self.deliver(client, to: receiver)
            let due = server.clock.clock.now()
            try await server.project.store.write { transaction in
                var stored = try transaction.reading.outboxMessage(id, tenantID: .empty)
                stored.message?.state = .pending
                stored.message?.nextAttemptAtMicros = due.microseconds
                try transaction.put(Tables.outbox, TenantTextKey(.empty, id), stored)
                // Such a server queued an SMS among the mails.
                try transaction.put(Tables.outboxDue, OutboxDueKey(due, .empty, id), [])
            }
            let sent = try await client.newestMail(becomes: .sent)
            #expect(sent.messageID == id && receiver.requestCount("/sms") == 1)
        }
    }

    @Test func `Settings are held to their rules, and tell no secret`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try server.makeTenant("acme")
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            func update(_ paths: [Text], _ config: SmsConfig) -> String {
                failure {
                    let _: SmsConfigsUpdateResponse = try admin.call(
                        "postern.v1.SmsConfigs/Update",
                        SmsConfigsUpdateRequest(
                            tenantID: "acme", config: config, updateMask: ProtobufFieldMask(paths: paths)))
                }.reason
            }
            let hook = WebhookConfig(url: "https://sms.example/send", signingSecret: Secret(Self.secret))
            #expect(update([], SmsConfig()) == "INVALID_UPDATE_MASK")
            #expect(update(["delivery"], SmsConfig()) == "INVALID_DELIVERY")
            #expect(update(["delivery"], SmsConfig(delivery: .webhook)) == "INVALID_WEBHOOK")
            #expect(update(["webhook"], SmsConfig(webhook: WebhookConfig(url: "ftp://x"))) == "INVALID_WEBHOOK")
            #expect(
                update(["allow_private_addresses"], SmsConfig(allowPrivateAddresses: true)) == "INSUFFICIENT_PERMISSION"
            )
            #expect(update(["delivery", "webhook"], SmsConfig(delivery: .webhook, webhook: hook)) == "")
            // The secret is for the URL that it was given for.
            let elsewhere = WebhookConfig(url: "https://eve.example/send")
            #expect(update(["webhook"], SmsConfig(webhook: elsewhere)) == "INVALID_WEBHOOK")
            let found: SmsConfigsGetResponse = try admin.call(
                "postern.v1.SmsConfigs/Get", SmsConfigsGetRequest(tenantID: "acme"))
            #expect(
                found.config?.webhook?.hasSigningSecret == true && found.config?.webhook?.signingSecret.isEmpty == true)
            #expect(found.config?.revision == 1)
            let unset: SmsConfigsGetResponse = try client.client.call(
                "postern.v1.SmsConfigs/Get", SmsConfigsGetRequest())
            #expect(unset.config == SmsConfig(delivery: .outbox))
        }
    }
}
