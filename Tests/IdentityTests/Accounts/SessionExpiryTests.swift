import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

@Suite struct SessionExpiryTests {
    /// The deletion of a tenant finds no session whose row in `session_by_user` is damaged.
    @Test func aSessionOfADeletedTenantGoesWhenItFallsDue() async throws {
        try await withFixture { fixture in
            let (now, id) = (fixture.now, [UInt8](repeating: 7, count: 16))
            let settings = tenantSettings { $0.sessionIdleSeconds = 3_600 }
            let session = StoredSession(
                tenantID: "acme", uid: "u1", createdAtMicros: now.microseconds, counter: 1,
                lastUsedAtMicros: now.microseconds)
            try await fixture.store.write { transaction in
                try transaction.insertSession(session, id: id, sessionsMax: 10, settings: settings, now: now)
                try transaction.put(Tables.tenants, TenantPrefix("acme"), StoredTenant(deleted: true))
                try transaction.delete(Tables.sessionByUser, UserSessionKey("acme", "u1", id))
            }
            let due = now + .seconds(3_600)
            let early = try await fixture.store.write {
                try $0.expireRecords(now: due - .microseconds(1), limit: 10)
            }
            let slice = try await fixture.store.write { try $0.expireRecords(now: due, limit: 10) }
            #expect(early.count == 0 && slice.count == 1)
            #expect(try fixture.store.read { try $0.count(Tables.sessions) } == 0)
        }
    }
}
