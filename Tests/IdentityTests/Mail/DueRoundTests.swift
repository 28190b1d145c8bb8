import Base
import Crypto
import Messages
import Outbound
import Reactor
import Rules
import Store
import Testing

@testable import Identity

/// Which tenants are looked at for messages that are due, how many of them in one turn, and how often.
@Suite struct DueRoundTests {
    private static func tenant(_ number: Int) -> Text { Text("t\(1_000 + number)") }

    /// Puts rows of messages into the queue that are not there. `times`: those of the tenants' rows.
    private static func queue(_ times: [[Timestamp]], areSMS: Bool = false, in store: Store) async throws {
        try await store.write { transaction in
            for (number, times) in times.enumerated() {
                for (index, time) in times.enumerated() {
                    let key = OutboxDueKey(time, Self.tenant(number), Text("m\(index)"), isSMS: areSMS)
                    try transaction.put(Tables.outboxDue, key, [])
                }
            }
        }
    }

    /// The messages of the next step, and the tenants that were looked at.
    private static func step(
        _ round: inout DueRound, limit: Int = 64, tenantsMax: Int = 64, _ fixture: Fixture
    ) throws -> (due: [OutboxDueKey], looked: [Text]) {
        var looked: [Text] = []
        let due = try fixture.store.read { transaction in
            try round.next(
                limit: limit, tenantsMax: tenantsMax, now: fixture.now, in: transaction,
                room: { tenant, _ in
                    looked.append(tenant)
                    return DeliveryRoom(mails: 2, sms: 2)
                }, isTaken: { _ in false })
        }
        return (due, looked)
    }

    @Test func `A step looks at so many tenants, and a round at each of them once`() async throws {
        try await withFixture { fixture in
            let (now, later) = (fixture.now, fixture.now + .hours(1))
            try await Self.queue((0..<10).map { [$0 == 2 ? now : later] }, in: fixture.store)
            var round = DueRound(after: Self.tenant(3))
            var (due, looked): ([OutboxDueKey], [[Text]]) = ([], [])
            while !round.isOver, looked.count < 10 {
                let step = try Self.step(&round, tenantsMax: 4, fixture)
                due += step.due
                looked.append(step.looked)
            }
            #expect(looked.map(\.count) == [4, 4, 2])
            #expect(looked.flatMap { $0 } == [4, 5, 6, 7, 8, 9, 0, 1, 2, 3].map(Self.tenant))
            #expect(due.map(\.tenant) == [Self.tenant(2)])
        }
    }

    @Test func `A round goes on behind the tenant that got the last place`() async throws {
        try await withFixture { fixture in
            let now = fixture.now
            try await Self.queue((0..<3).map { _ in [now, now] }, in: fixture.store)
            var round = DueRound(after: nil)
            let first = try Self.step(&round, limit: 3, fixture)
            #expect(first.due.map(\.tenant) == [0, 0, 1].map(Self.tenant) && !round.isOver)
            let second = try Self.step(&round, fixture)
            #expect(second.due.map(\.tenant) == [2, 2].map(Self.tenant) && round.isOver)
            #expect(second.looked == [Self.tenant(2)])
        }
    }

    @Test func `SMS are found before the mails that wait, each when it is due`() async throws {
        try await withFixture { fixture in
            let (now, later) = (fixture.now, fixture.now + .hours(1))
            try await Self.queue([[Timestamp](repeating: now - .hours(1), count: 100)], in: fixture.store)
            try await Self.queue([[now - .seconds(1), later, now]], areSMS: true, in: fixture.store)
            var round = DueRound(after: nil)
            let due = try Self.step(&round, fixture).due
            #expect(due.map(\.isSMS) == [true, true, false, false])
            #expect(due.map(\.messageID) == ["m0", "m2", "m0", "m1"])
        }
    }

    @Test func `Messages of a suspended tenant are not due, and nobody claims them`() async throws {
        try await withFixture { fixture in
            let now = fixture.now
            try await Self.queue((0..<3).map { _ in [now] }, in: fixture.store)
            try await Self.queue((0..<3).map { _ in [now] }, areSMS: true, in: fixture.store)
            var suspended = TenantSettings.defaults(tenantID: Self.tenant(1), now: now)
            suspended.suspended = true
            let record = StoredTenant(tenant: suspended)
            let message = OutboxMessage(
                messageID: "m9", state: .pending, nextAttemptAtMicros: now.microseconds,
                expiresAtMicros: (now + .hours(1)).microseconds)
            let outcomes = try await fixture.store.write { transaction in
                try transaction.put(Tables.tenants, TenantPrefix(Self.tenant(1)), record)
                try transaction.putOutbox(StoredOutboxMessage(message: message), tenantID: Self.tenant(1))
                let due = DueMessage(key: OutboxDueKey(now, Self.tenant(1), "m9"), abandonedBy: nil)
                return try transaction.claim([due], [1], until: now + .minutes(2))
            }
            if case .refused? = outcomes.first {} else { Issue.record("a node claimed the message") }
            var round = DueRound(after: nil)
            let found = try Self.step(&round, fixture)
            #expect(found.due.map(\.tenant) == [0, 0, 2, 2].map(Self.tenant))
            #expect(found.looked == [0, 1, 2].map(Self.tenant) && round.isOver)
            #expect(try fixture.rows(Tables.outboxDue).count == 7)
        }
    }

    // MARK: The mailer

    private static func withMailer(_ body: (Fixture, Mailer) async throws -> Void) async throws {
        let pool = WorkerPool(name: "outbound", workers: 1, queueMax: 16, queueMaxPerTenant: 16)
        defer { end(pool) }
        try await withFixture { fixture in
            let resources = fixture.resources
            let sealing = SealingKey(Secret([UInt8](repeating: 7, count: 32)))
            let pool = OutboundPool(pool)
            let page: Text = "https://postern.test/action"
            let configs = EmailConfigs(resources: resources, sealing: sealing, serverActionURL: page)
            let seal = OutboxSeal(sealing: sealing, random: resources.random)
            let mailer = Mailer(
                resources: resources, configs: configs,
                contents: OobDelivery(resources: resources, seal: seal, actionURL: page, configs: configs),
                smsConfigs: SMSConfigs(resources: resources, sealing: sealing),
                smtp: SMTPClient(pool: pool), http: HTTPClient(pool: pool),
                loop: fixture.loops.loop(for: 0))
            try await body(fixture, mailer)
        }
    }

    /// Closing may block a test's thread for a moment.
    private static func end(_ pool: WorkerPool) { pool.close() }

    /// A delivery for a row without a message ends at once, and takes the row away. The mailer is not started, so that
    /// nothing but `deliverDue` begins a round.
    @Test func `After a delivery only its own tenant is looked at again`() async throws {
        try await Self.withMailer { fixture, mailer in
            let (now, later) = (fixture.now, fixture.now + .hours(1))
            let (tenantCount, mailCount) = (20, 10)
            let due = [Timestamp](repeating: now, count: mailCount)
            try await Self.queue((0..<tenantCount).map { $0 == 7 ? due : [later] }, in: fixture.store)
            await mailer.deliverDue()
            #expect(try fixture.rows(Tables.outboxDue).count == tenantCount - 1)
            #expect(mailer.looks.value == UInt64(tenantCount + mailCount))
        }
    }

    @Test func `A round of several turns is made to its end`() async throws {
        try await Self.withMailer { fixture, mailer in
            let (now, later) = (fixture.now, fixture.now + .hours(1))
            let tenantCount = 2 * Mailer.tenantsPerStep + 1
            try await Self.queue(
                (0..<tenantCount).map { [$0 == tenantCount - 1 ? now : later] }, in: fixture.store)
            await mailer.deliverDue()
            #expect(try fixture.rows(Tables.outboxDue).count == tenantCount - 1)
            #expect(mailer.looks.value == UInt64(tenantCount + 1))
        }
    }
}
