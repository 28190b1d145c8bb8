import Base
import Messages
import Reactor
import Service
import Synchronization
import TestSupport
import Testing

@testable import Identity

/// The mail and SMS that wait for delivery when a project-admin suspends their tenant.
@Suite struct SuspendedMailTests {
    /// Refuses the first request, and takes the others.
    private static func makeReceiver() -> FakeHTTPServer {
        let requestCount = Mutex(0)
        return FakeHTTPServer { _ in
            let count = requestCount.withLock { count in
                count += 1
                return count
            }
            return .response(HTTPResponse(status: count == 1 ? 503 : 204, body: []))
        }
    }

    private static func suspend(_ client: IdentityClient, _ isSuspended: Bool) throws {
        try client.setTenant(["suspended"]) { $0.suspended = isSuspended }
    }

    /// Has a message tried and refused once, and suspends its tenant. Returns the message as the outbox lists it.
    private static func leaveWaiting(_ client: IdentityClient, isSMS: Bool, to url: String) async throws
        -> OutboxMessage
    {
        if isSMS {
            try client.allowPhones()
            try client.configureSMS(["delivery", "webhook", "allow_private_addresses"]) {
                $0.delivery = .webhook
                $0.webhook = WebhookConfig(
                    url: Text("\(url)/message"), signingSecret: Secret([UInt8](repeating: 7, count: 32)))
                $0.allowPrivateAddresses = true
            }
            try client.sendCode(to: PhoneSignInTests.number)
        } else {
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            try client.deliverByWebhook(url: "\(url)/message")
            try client.sendOob(.emailSignin, email: "ada@example.com")
        }
        let waiting = try await client.newestMail { $0.attempts == 1 }
        try suspend(client, true)
        return waiting
    }

    @Test(arguments: [false, true])
    func `A message waits as it is while its tenant is suspended, and goes out afterwards`(isSMS: Bool) async throws {
        let receiver = Self.makeReceiver()
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            let waiting = try await Self.leaveWaiting(client, isSMS: isSMS, to: receiver.url)
            server.clock.advance(by: .seconds(isSMS ? 30 : 120))
            for _ in 0..<3 { await server.project.mailer.deliverDue() }
            let listed: OutboxListResponse = try client.client.call("postern.v1.Outbox/List", OutboxListRequest())
            // Not even the time of the next attempt was written.
            #expect(listed.messages.first == waiting)
            #expect(receiver.requestCount("/message") == 1)
            var pass = OutboxPass()
            let census = try server.project.outbox.census(&pass)
            #expect(census.pendingCount == 1 && census.overdue == .zero)

            try Self.suspend(client, false)
            let sent = try await client.newestMail { $0.state == .sent }
            #expect(sent.messageID == waiting.messageID && sent.attempts == 2)
            #expect(receiver.requestCount("/message") == 2)
        }
    }

    @Test func `A message whose code expired meanwhile is not sent`() async throws {
        let receiver = Self.makeReceiver()
        defer { receiver.close() }
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try await Self.leaveWaiting(client, isSMS: true, to: receiver.url)
            server.clock.advance(by: .minutes(6))
            try Self.suspend(client, false)
            let dead = try await client.newestMail { $0.state == .dead }
            #expect(dead.lastError == StoredOutboxMessage.expiredCode)
            #expect(receiver.requestCount("/message") == 1)
        }
    }
}
