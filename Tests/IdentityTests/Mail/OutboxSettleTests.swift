import Base
import Messages
import Store
import Testing

@testable import Identity

/// What an attempt leaves in the store: the message, and its row in the queue.
@Suite struct OutboxSettleTests {
    private static let id: Text = "m1"

    private static func put(_ fixture: Fixture, isSMS: Bool = false) async throws {
        let now = fixture.now
        let message = OutboxMessage(
            messageID: id, requestType: isSMS ? .unspecified : .verifyEmail, to: "somebody", state: .pending,
            createdAtMicros: now.microseconds, nextAttemptAtMicros: now.microseconds,
            expiresAtMicros: (now + .hours(1)).microseconds,
            verificationPurpose: isSMS ? .signIn : .unspecified)
        try await fixture.makeTenant()
        try await fixture.store.write { try $0.putOutbox(StoredOutboxMessage(message: message), tenantID: "acme") }
    }

    private static func stored(_ fixture: Fixture) throws -> StoredOutboxMessage {
        let found = try fixture.store.read { try $0.get(Tables.outbox, TenantTextKey("acme", id)) }
        return try #require(found)
    }

    /// The rows of the queue.
    private static func due(_ fixture: Fixture) throws -> [OutboxDueKey] {
        try fixture.store.read { transaction in
            var keys: [OutboxDueKey] = []
            try transaction.scanKeys(of: Tables.outboxDue) { key in
                keys.append(key)
                return true
            }
            return keys
        }
    }

    /// Settles the message that is due. Returns whether it is given up.
    private static func settle(_ fixture: Fixture, _ outcome: DeliveryOutcome) async throws -> Bool {
        let key = try #require(try due(fixture).first)
        let now = fixture.now
        return try await fixture.store.write { try $0.settle(key, outcome, random: 0, now: now) }
    }

    @Test func `A mail without an answer is given up the third time, whatever came in between`() async throws {
        try await withFixture { fixture in
            try await Self.put(fixture)
            for outcome in [.unanswered("no answer"), .failed("no"), .unanswered("no answer")] as [DeliveryOutcome] {
                let isGivenUp = try await Self.settle(fixture, outcome)
                #expect(!isGivenUp)
            }
            let isGivenUp = try await Self.settle(fixture, .unanswered("no answer"))
            let stored = try Self.stored(fixture)
            #expect(isGivenUp && stored.message?.state == .dead)
            #expect(stored.unansweredAttempts == 3 && stored.message?.attempts == 4)
            let left = try Self.due(fixture)
            #expect(left.isEmpty)
        }
    }

    @Test(arguments: [false, true]) func `The row of a message follows its next attempt`(isSMS: Bool) async throws {
        try await withFixture { fixture in
            try await Self.put(fixture, isSMS: isSMS)
            let first = try Self.due(fixture)
            #expect(first == [OutboxDueKey(fixture.now, "acme", Self.id, isSMS: isSMS)])
            _ = try await Self.settle(fixture, .failed("no"))
            let next = try #require(try Self.stored(fixture).message).nextAttemptAtMicros
            let second = try Self.due(fixture)
            #expect(second == [OutboxDueKey(Timestamp(microseconds: next), "acme", Self.id, isSMS: isSMS)])
            _ = try await Self.settle(fixture, .sent)
            let third = try Self.due(fixture)
            #expect(third.isEmpty)
        }
    }

    /// A claim moves the row of an SMS that an older server queued to the rows of SMS.
    @Test func `A claim of an SMS of an older server leaves one row`() async throws {
        try await withFixture { fixture in
            try await Self.put(fixture, isSMS: true)
            let (now, until) = (fixture.now, fixture.now + .minutes(2))
            let old = OutboxDueKey(now, "acme", Self.id)
            let claims = try await fixture.store.write { transaction in
                try transaction.delete(Tables.outboxDue, OutboxDueKey(now, "acme", Self.id, isSMS: true))
                try transaction.put(Tables.outboxDue, old, [])
                return try transaction.claim([DueMessage(key: old, abandonedBy: nil)], [1], until: until)
            }
            let left = try Self.due(fixture)
            #expect(left == [OutboxDueKey(until, "acme", Self.id, isSMS: true)])
            let claimed = claims.map { outcome -> OutboxDueKey? in
                if case .claimed(let claim) = outcome { claim.key } else { nil }
            }
            #expect(claimed == [left.first])
        }
    }
}
