import Base
import Crypto
import Messages
import Outbound
import Reactor
import Store
import Testing

@testable import Identity

/// What becomes of a message when the store cannot be read, and when a record is damaged.
@Suite struct UnreadableMailTests {
    private struct Scene {
        let fixture: Fixture
        let seal: OutboxSeal
        let delivery: MailDelivery

        init(_ fixture: Fixture, _ pool: WorkerPool) {
            let resources = fixture.resources
            let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
            let configs = EmailConfigs(
                resources: resources, sealing: sealing, serverActionURL: "https://postern.test/action")
            let webhook = WebhookPost(resources: resources, http: HTTPClient(pool: OutboundPool(pool)))
            self.fixture = fixture
            seal = OutboxSeal(sealing: sealing, random: resources.random)
            delivery = MailDelivery(
                resources: resources, configs: configs,
                contents: OobDelivery(
                    resources: resources, seal: seal, actionURL: "https://postern.test/action", configs: configs),
                sms: SMSAttempt(configs: SMSConfigs(resources: resources, sealing: sealing), webhook: webhook),
                smtp: SMTPClient(pool: OutboundPool(pool)), webhook: webhook)
        }

        /// Puts a message that is due into the outbox of "acme".
        func queue(isSMS: Bool = false) async throws -> (key: OutboxDueKey, stored: StoredOutboxMessage) {
            let now = fixture.now
            let message = OutboxMessage(
                messageID: "m1", to: isSMS ? "+491701234567" : "ada@example.com", state: .pending,
                createdAtMicros: now.microseconds, nextAttemptAtMicros: now.microseconds,
                expiresAtMicros: (now + .hours(1)).microseconds,
                verificationPurpose: isSMS ? .signIn : .unspecified)
            let sealed = try seal.seal(OutboxContents(text: "hello"), tenantID: "acme", messageID: "m1")
            let stored = StoredOutboxMessage(message: message, sealedContents: sealed)
            try await fixture.makeTenant()
            try await fixture.store.write { try $0.putOutbox(stored, tenantID: "acme") }
            return (OutboxDueKey(now, "acme", "m1"), stored)
        }

        /// Replaces a record by the length of a field that is not there.
        func damage<Key: StoreKey & Sendable, Record>(_ table: Table<Key, Record>, _ key: Key) async throws {
            let asBytes = Table<Key, [UInt8]>(
                id: table.id, name: table.name, owner: table.owner, purge: table.purge)
            try await fixture.store.write { try $0.put(asBytes, key, [0x0A, 0x7F]) }
        }

        func closeStore() { fixture.store.close() }
    }

    private static func run(_ body: (Scene) async throws -> Void) async throws {
        let pool = WorkerPool(name: "outbound", workers: 1, queueMax: 16, queueMaxPerTenant: 16)
        defer { end(pool) }
        try await withFixture { try await body(Scene($0, pool)) }
    }

    /// Closing may block a test's thread for a moment.
    private static func end(_ pool: WorkerPool) { pool.close() }

    @Test func `A message is kept while the store cannot be read`() async throws {
        try await Self.run { scene in
            let (key, _) = try await scene.queue()
            scene.closeStore()
            let outcome = await scene.delivery.attempt(due: key)
            #expect(outcome == .unreadable)
        }
    }

    @Test(arguments: [false, true])
    func `A message loses no attempt while its tenant's settings cannot be read`(_ isSMS: Bool) async throws {
        try await Self.run { scene in
            let (_, stored) = try await scene.queue(isSMS: isSMS)
            scene.closeStore()
            let outcome = await scene.delivery.attempt(stored, tenantID: "acme")
            #expect(outcome == .unreadable && !outcome.isAttempt)
        }
    }

    @Test func `A message is kept if its tenant was suspended after the message was found to be due`() async throws {
        try await Self.run { scene in
            let (key, _) = try await scene.queue()
            try await scene.fixture.store.write { transaction in
                var record = try #require(try transaction.get(Tables.tenants, TenantPrefix("acme")))
                record.tenant?.suspended = true
                try transaction.put(Tables.tenants, TenantPrefix("acme"), record)
            }
            let outcome = await scene.delivery.attempt(due: key)
            #expect(outcome == .suspended && outcome?.isAttempt == false)
        }
    }

    @Test func `A damaged message leaves the queue, and a message waits for damaged settings`() async throws {
        try await Self.run { scene in
            let (key, stored) = try await scene.queue()
            try await scene.damage(Tables.emailConfigs, TenantPrefix("acme"))
            let outcome = await scene.delivery.attempt(stored, tenantID: "acme")
            #expect(outcome == .failed("the mail settings cannot be read"))
            try await scene.damage(Tables.outbox, TenantTextKey("acme", "m1"))
            #expect(await scene.delivery.attempt(due: key) == nil)
        }
    }
}
