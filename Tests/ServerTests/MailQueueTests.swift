import Base
import Crypto
import Glibc
import Identity
import Messages
import Reactor
import Store
import TestSupport
import Testing

@testable import Service

/// Messages that wait in the outbox: whose turn it is, and what becomes of them when something else intervenes.
@Suite struct MailQueueTests {
    /// The messages in `state`, all pages.
    private static func list(_ client: IdentityClient, _ state: OutboxState = .unspecified) throws -> [OutboxMessage] {
        var request = OutboxListRequest(state: state)
        var messages: [OutboxMessage] = []
        repeat {
            let page: OutboxListResponse = try client.client.call("postern.v1.Outbox/List", request)
            messages += page.messages
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
        return messages
    }

    @Test func aTenantWhoseServerHangsDoesNotHoldUpTheOthers() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
        defer { receiver.close() }
        let silent = try SilentServer()
        try await withServer { server in
            // Closing the server at the end breaks off the waiting deliveries at once.
            defer { silent.close() }
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try client.configureMail(["delivery", "smtp", "sender_address", "allow_private_addresses"]) {
                $0.delivery = .smtp
                $0.smtp = SmtpConfig(host: "127.0.0.1", port: Int32(silent.port), security: .none)
                $0.senderAddress = "no-reply@example.com"
                $0.allowPrivateAddresses = true
            }
            for number in 0..<16 { try client.sendOob(.emailSignin, email: Text("user\(number)@example.com")) }
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create",
                TenantsCreateRequest(
                    tenantID: "acme", tenant: Messages.Tenant(enableEmailLinkSignin: true),
                    updateMask: ProtobufFieldMask(paths: ["enable_email_link_signin"])))
            try client.deliverByWebhook(tenantID: "acme", url: "\(receiver.url)/mail")
            let _: AccountsSendOobCodeResponse = try client.client.call(
                "postern.v1.Accounts/SendOobCode",
                AccountsSendOobCodeRequest(tenantID: "acme", requestType: .emailSignin, email: "ada@example.com"))
            try await until("the other tenant's mail is sent") {
                receiver.requestCount("/mail") == 1
            }
        }
    }

    @Test func `Whoever deletes a mail that was to be delivered is in the event log`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            /// Has a mail sent, and deletes it.
            func delete() throws -> Text {
                try client.sendOob(.passwordReset, email: "ada@example.com")
                let id = try #require(try Self.list(client).first).messageID
                let _: OutboxDeleteResponse = try client.client.call(
                    "postern.v1.Outbox/Delete", OutboxDeleteRequest(messageID: id))
                return id
            }
            // Where mail is held to be read, deleting it is how it is used up.
            _ = try delete()
            // Nobody listens there.
            try client.deliverBySMTP(port: 1)
            let id = try delete()
            let found: AuditListEventsResponse = try client.client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(filter: EventFilter(kinds: [.outboxMessageDeleted])))
            #expect(found.events.map(\.detail) == [Text("passwordReset \(id)")])
            #expect(found.events.allSatisfy { !$0.caller.isEmpty })
        }
    }

    @Test func `A webhook that takes a mail gets it once, however much it answers`() async throws {
        let receiver = FakeHTTPServer { _ in .flood(1 << 20) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let tried = try await client.newestMail { $0.attempts > 0 }
            #expect(tried.state == .sent && receiver.requestCount("/mail") == 1)
        }
    }

    @Test func aDamagedRowOfTheQueueDoesNotHoldUpTheMessagesBehindIt() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            // A key without a time, which comes before all others.
            let table = Tables.outboxDue
            let asBytes = Table<TenantPrefix, [UInt8]>(
                id: table.id, name: table.name, owner: table.owner, purge: table.purge)
            try await server.project.store.write { try $0.put(asBytes, TenantPrefix(.empty), []) }
            try client.sendOob(.emailSignin, email: "ada@example.com")
            try await until("the mail behind a damaged row is sent") { receiver.requestCount("/mail") == 1 }
        }
    }

    /// The mail server took or refused the mail, and keeps the connection. The outcome does not wait for its goodbye,
    /// which would hold a thread.
    @Test(arguments: [(nil, .sent), ("550", .dead)] as [(String?, OutboxState)])
    func aMailIsSettledWithoutTheAnswerToQuit(_ refusal: String?, _ state: OutboxState) async throws {
        try await withTemporaryDirectory { directory in
            let options = ["--hold-quit"] + (refusal.map { ["--refuse", $0] } ?? [])
            let mailServer = try MailServer(directory, port: try CrashTests.freePort(), options)
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: mailServer.port)
                _ = try client.signUp("ada@example.com")
                try client.sendOob(.passwordReset, email: "ada@example.com")
                let settled = try await client.newestMail(becomes: state)
                #expect(settled.attempts == 1)
                // The server writes a line more once it has answered QUIT.
                #expect(try mailServer.mails().count == (refusal == nil ? 1 : 0))
            }
        }
    }

    @Test func `A mail without a place on its way out waits and loses no attempt`() async throws {
        try await withTemporaryDirectory { directory in
            let silent = try SilentServer()
            try await withServer(configure: { $0.limits.outboundRequestsPerTenantMax = 1 }) { server in
                let client = try IdentityClient(server)
                try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
                try client.deliverBySMTP(port: silent.port)
                for user in ["ann", "bob"] { try client.sendOob(.emailSignin, email: Text("\(user)@example.com")) }
                try await until("a mail is refused") { try Self.list(client).contains { !$0.lastError.isEmpty } }
                let refused = try #require(try Self.list(client).first { !$0.lastError.isEmpty })
                #expect(refused.state == .pending && refused.attempts == 0)
                #expect(refused.lastError == "too much of this tenant is on its way")
                #expect(refused.nextAttemptAtMicros > server.clock.clock.now().microseconds)
                silent.close()
                try await until("the mail gives its place back") {
                    try Self.list(client).contains { $0.attempts == 1 }
                }
                let mailServer = try MailServer(directory, port: silent.port)
                try await until("the mails are sent") {
                    // Slowly, so that no mail expires.
                    server.clock.advance(by: .milliseconds(750))
                    return try Self.list(client, .sent).count == 2
                }
                let sent = try Self.list(client, .sent)
                #expect(sent.first { $0.messageID == refused.messageID }?.attempts == 1)
                #expect(try mailServer.mails().count == 2)
            }
        }
    }

    @Test func `A mail whose link has expired is not sent`() async throws {
        try await withTemporaryDirectory { directory in
            let port = try CrashTests.freePort()
            try await withServer { server in
                let client = try IdentityClient(server)
                try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
                try client.deliverBySMTP(port: port)
                try client.sendOob(.emailSignin, email: "ada@example.com")
                try await client.newestMail { $0.attempts == 1 }
                let mailServer = try MailServer(directory, port: port)
                server.clock.advance(by: .minutes(15))
                let dead = try await client.newestMail(becomes: .dead)
                #expect(dead.lastError == "its code has expired")
                expectRefusal("OUTBOX_MESSAGE_NOT_DELIVERABLE") {
                    let _: OutboxRetryResponse = try client.client.call(
                        "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: dead.messageID))
                }
                #expect(try mailServer.mails().isEmpty)
            }
        }
    }

    @Test func `A mail that was held goes out by a retry once the tenant delivers, and not by itself`() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let held = try #require(try client.mails().first).message
            func retry() throws -> OutboxMessage? {
                let answer: OutboxRetryResponse = try client.client.call(
                    "postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: held.messageID))
                return answer.message
            }
            let refused = failure { _ = try retry() }
            #expect(refused.reason == "OUTBOX_MESSAGE_NOT_DELIVERABLE" && refused.message.contains("is held"))
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            await server.project.mailer.deliverDue()
            let listed = try #require(try client.mails().first).message
            #expect(listed == held && receiver.requestCount("/mail") == 0)
            #expect(try retry()?.state == .pending)
            let sent = try await client.newestMail(becomes: .sent)
            #expect(sent.messageID == held.messageID && receiver.requestCount("/mail") == 1)
            #expect(failure { _ = try retry() }.message.contains("sent already"))
        }
    }

    @Test func aMailThatWasSentIsNotSentAgainByARowThatWasLeftBehind() async throws {
        let receiver = FakeHTTPServer { _ in .response(HTTPResponse(status: 200, body: [])) }
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.deliverByWebhook(url: "\(receiver.url)/mail")
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try await until("the mail is sent") { try Self.list(client, .sent).count == 1 }
            let sent = try Self.list(client, .sent)[0]
            let stale = OutboxDueKey(server.clock.clock.now(), .empty, sent.messageID)
            try await server.project.store.write { try $0.put(Tables.outboxDue, stale, []) }
            await server.project.mailer.deliverDue()
            #expect(receiver.requestCount("/mail") == 1)
            let isLeft = try server.project.store.read { try $0.get(Tables.outboxDue, stale) != nil }
            #expect(!isLeft)
        }
    }

    @Test func `A mail server that hangs does not hold up a stop, and the mail loses no attempt`() async throws {
        try await withTemporaryDirectory { directory in
            let silent = try SilentServer()
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let store = "\(directory)/store"
            mkdir(store, 0o700)
            var begun = Instant.now
            let key = try await withServer(directory: store, clock: clock, masterKey: masterKey) { server in
                let client = try IdentityClient(server)
                try client.deliverBySMTP(port: silent.port)
                _ = try client.signUp("ada@example.com")
                try client.sendOob(.passwordReset, email: "ada@example.com")
                let pool = server.instance.outboundPool
                try await until("the mail hangs") { pool.counts.running == 1 }
                let id = try #require(try Self.list(client).first).messageID
                begun = .now
                await server.instance.drain()
                try await until("the outcome is written") {
                    let stored = try server.project.store.read { try $0.outboxMessage(id, tenantID: .empty) }
                    return stored.message?.lastError == "this server is stopping"
                }
                return server.adminKey
            }
            // The mail server would have had half a minute.
            #expect(begun.advanced(by: .seconds(15)) > .now)
            silent.close()
            let mailServer = try MailServer(directory, port: silent.port)
            clock.advance(by: .minutes(5))
            try await withServer(directory: store, clock: clock, masterKey: masterKey, adminKey: key) { server in
                let sent = try await IdentityClient(server).newestMail(becomes: .sent)
                #expect(sent.attempts == 1)
            }
            #expect(try mailServer.mails().count == 1)
        }
    }

    @Test func whatWaitsWhenATenantStopsDeliveringIsHeldToBeRead() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.deliverByWebhook(url: "http://127.0.0.1:\(try CrashTests.freePort())/mail")
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            try await until("a delivery was tried") { try Self.list(client, .pending).first?.attempts == 1 }
            try client.configureMail(["delivery"]) { $0.delivery = .outbox }
            server.clock.advance(by: .minutes(10))
            try await until("the mail is held") { try Self.list(client, .held).count == 1 }
            #expect(try Self.list(client).count == 1)
        }
    }

    @Test func aListReadsSoMuchAPageAndGoesOnBehindIt() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try await server.project.store.write { transaction in
                for number in 0..<1_500 {
                    let id = Text("id\(10_000 + number)")
                    let message = OutboxMessage(messageID: id, state: number == 0 ? .dead : .sent)
                    try transaction.put(
                        Tables.outbox, TenantTextKey(.empty, id), StoredOutboxMessage(message: message))
                }
            }
            let first: OutboxListResponse = try client.client.call(
                "postern.v1.Outbox/List", OutboxListRequest(state: .dead))
            #expect(first.messages.isEmpty && !first.nextPageToken.isEmpty)
            #expect(try Self.list(client, .dead).map(\.messageID) == ["id10000"])
            #expect(try Self.list(client).count == 1_500)
        }
    }
}
