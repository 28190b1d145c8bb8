import Base
import Messages
import Rules
import Store
import TestSupport
import Testing
import Tokens

@testable import Identity

@Suite struct SessionWritesTests {
    private static let key = UserKey("acme", "u1")
    private let settings = tenantSettings { tenant in
        tenant.sessionIdleSeconds = 3_600
        tenant.sessionAbsoluteSeconds = 7_200
    }

    private func id(_ number: Int) -> [UInt8] { (0..<16).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }

    private func insert(
        _ number: Int, uid: Text = "u1", usedAt: Timestamp, sessionsMax: Int = 100, in fixture: Fixture
    ) async throws {
        let (id, settings, now) = (id(number), settings, fixture.now)
        let session = StoredSession(
            tenantID: "acme", uid: uid, createdAtMicros: usedAt.microseconds, counter: 1,
            lastUsedAtMicros: usedAt.microseconds)
        try await fixture.store.write {
            try $0.insertSession(session, id: id, sessionsMax: sessionsMax, settings: settings, now: now)
        }
    }

    /// How many sessions the sweep deals with.
    private func expire(at time: Timestamp, in fixture: Fixture) async throws -> Int {
        try await fixture.store.write { try $0.expireRecords(now: time, limit: 10) }.count
    }

    private func sessionIDs(of key: UserKey = key, in fixture: Fixture) throws -> Set<[UInt8]> {
        Set(try fixture.store.read { try $0.sessionIDs(of: key) })
    }

    @Test func theHundredAndFirstSessionTakesTheLongestUnusedOnesPlace() async throws {
        try await withFixture { fixture in
            let count = Limits().sessionsPerUserMax
            // The sessions are used in another order than they began in.
            for number in 0..<count {
                try await insert(number, usedAt: fixture.now + .seconds(Int64((number * 37) % count)), in: fixture)
            }
            #expect(try sessionIDs(in: fixture).count == count)
            try await insert(1_000, usedAt: fixture.now + .seconds(1_000), in: fixture)
            var expected = Set((0..<count).map(id) + [id(1_000)])
            expected.remove(id(0))
            #expect(try sessionIDs(in: fixture) == expected)
            #expect(Set(try fixture.rows(Tables.sessions).keys) == expected)
            // 37 · 73 = 27 · 100 + 1: session 73 is the next to go.
            try await insert(1_001, usedAt: fixture.now + .seconds(1_001), in: fixture)
            expected.remove(id(73))
            expected.insert(id(1_001))
            #expect(try sessionIDs(in: fixture) == expected)
        }
    }

    @Test func endedSessionsMakeRoomInTheOrderOfTheirEndsAndThenLiveOnes() async throws {
        try await withFixture { fixture in
            for number in 0..<4 { try await insert(number, usedAt: fixture.now + .seconds(Int64(number)), in: fixture) }
            let (now, ids) = (fixture.now, (0..<4).map(id))
            try await fixture.store.write { transaction in
                for (number, seconds) in [(3, 10), (1, 20)] as [(Int, Int64)] {
                    let key = SessionKey(ids[number])
                    guard let session = try transaction.get(Tables.sessions, key) else { continue }
                    try transaction.put(Tables.sessions, key, session.ended(.signedOut, at: now + .seconds(seconds)))
                }
            }
            let courses = [(10, [0, 1, 2, 10]), (11, [0, 2, 10, 11]), (12, [2, 10, 11, 12])] as [(Int, [Int])]
            for (number, left) in courses {
                try await insert(number, usedAt: now + .seconds(Int64(100 + number)), sessionsMax: 4, in: fixture)
                #expect(try sessionIDs(in: fixture) == Set(left.map(id)))
            }
        }
    }

    @Test func anotherUsersSessionsAreNotCounted() async throws {
        try await withFixture { fixture in
            for (number, uid) in (["u1", "u", "u11", "u1", "u2"] as [Text]).enumerated() {
                try await insert(number, uid: uid, usedAt: fixture.now, sessionsMax: 2, in: fixture)
            }
            #expect(try fixture.rows(Tables.sessions).count == 5)
            #expect(try sessionIDs(in: fixture) == [id(0), id(3)])
            #expect(try sessionIDs(of: UserKey("acme", "u"), in: fixture) == [id(1)])
            #expect(try sessionIDs(of: UserKey("other", "u1"), in: fixture).isEmpty)
        }
    }

    @Test func endingKeepsTheRecordsAndTheirFirstReason() async throws {
        try await withFixture { fixture in
            for number in 0..<3 { try await insert(number, usedAt: fixture.now, in: fixture) }
            try await insert(9, uid: "u2", usedAt: fixture.now, in: fixture)
            let (now, kept, ended) = (fixture.now, id(1), id(0))
            try await fixture.store.write { transaction in
                guard let session = try transaction.get(Tables.sessions, SessionKey(ended)) else { return }
                try transaction.put(Tables.sessions, SessionKey(ended), session.ended(.signedOut, at: now))
                try transaction.endSessions(of: Self.key, except: kept, .passwordChanged, now: now + .seconds(5))
            }
            let ends = try fixture.store.read { transaction in
                try [0, 1, 2, 9].map { try transaction.get(Tables.sessions, SessionKey(id($0)))?.end }
            }
            #expect(ends == [.signedOut, .unspecified, .passwordChanged, .unspecified])
            try await fixture.store.write { try $0.endSessions(of: Self.key, .admin, now: now) }
            let end = try fixture.store.read { try $0.get(Tables.sessions, SessionKey(kept))?.end }
            #expect(end == .admin)
        }
    }

    @Test func aSessionFallsDueAtTheEndOfItsShorterLifetime() async throws {
        try await withFixture { fixture in
            try await insert(7, usedAt: fixture.now, in: fixture)
            let due = fixture.now + .seconds(3_600)
            #expect(try await expire(at: due - .microseconds(1), in: fixture) == 0)
            #expect(try await expire(at: due, in: fixture) == 1)
        }
    }

    @Test func theLifetimesAreThoseOfTheSettings() async throws {
        try await withFixture { fixture in
            let tenant = tenantSettings { tenant in
                tenant.displayName = "Acme"
                tenant.sessionIdleSeconds = 3_600
                tenant.sessionAbsoluteSeconds = 315_360_000
                tenant.guidance = Guidance(message: "ask us")
                tenant.allowedContinueDomains = ["a.example", "b.example"]
            }.tenant
            let (full, empty) = (StoredTenant(tenant: tenant, secret: [1, 2]), StoredTenant())
            let deleted = StoredTenant(tenant: tenant, deleted: true)
            try await fixture.store.write { transaction in
                try transaction.put(Tables.tenants, TenantPrefix("full"), full)
                try transaction.put(Tables.tenants, TenantPrefix("empty"), empty)
                try transaction.put(Tables.tenants, TenantPrefix("deleted"), deleted)
            }
            try fixture.store.read { transaction in
                for (id, record) in [("full", full), ("empty", empty)] as [(Text, StoredTenant)] {
                    let (found, settings) = (try transaction.sessionLifetimes(ofTenant: id), TenantSettings(record))
                    #expect(found?.idle == settings.sessionIdle && found?.absolute == settings.sessionAbsolute)
                }
                #expect(try transaction.sessionLifetimes(ofTenant: "deleted") == nil)
                #expect(try transaction.sessionLifetimes(ofTenant: "missing") == nil)
            }
        }
    }

    /// A record that cannot be decoded shows that the sweep does not decode it: one of its texts is none.
    @Test func aSweepReadsNothingOfATenantButTheLifetimesOfSessions() async throws {
        try await withFixture { fixture in
            let tenant = Messages.Tenant(sessionIdleSeconds: 3_600, sessionAbsoluteSeconds: 7_200).encoded()
            let broken = tenant + [UInt8(Messages.Tenant.FieldNumber.displayName << 3 | 2), 1, 0xFF]
            let record = [UInt8(StoredTenant.FieldNumber.tenant << 3 | 2), UInt8(broken.count)] + broken
            try await fixture.store.write { transaction in
                try record.withUnsafeBytes { try transaction.put(Tables.tenants, TenantPrefix("acme"), bytes: $0) }
            }
            #expect(throws: StoreError.corrupt(table: "tenants")) {
                try fixture.store.read { _ = try $0.get(Tables.tenants, TenantPrefix("acme")) }
            }
            try await insert(0, usedAt: fixture.now, in: fixture)
            try await insert(1, usedAt: fixture.now + .seconds(1_000), in: fixture)
            let due = fixture.now + .seconds(3_600)
            #expect(try await expire(at: due, in: fixture) == 2)
            // The session that was used later is due again later.
            #expect(try sessionIDs(in: fixture) == [id(1)])
            let end = due + .seconds(1_000)
            #expect(try await expire(at: end, in: fixture) == 1)
            #expect(try sessionIDs(in: fixture).isEmpty)
        }
    }

    @Test func theLastRefreshIsTheNewestOfAllSessions() async throws {
        try await withFixture { fixture in
            #expect(try fixture.store.read { try $0.lastRefresh(tenantID: "acme", uid: "u1") } == 0)
            for (number, seconds) in [5, 40, 7].enumerated() {
                try await insert(number, usedAt: Timestamp(seconds: Int64(seconds)), in: fixture)
            }
            try await insert(9, uid: "u2", usedAt: fixture.now, in: fixture)
            #expect(try fixture.store.read { try $0.lastRefresh(tenantID: "acme", uid: "u1") } == 40_000_000)
        }
    }

    @Test func sessionsAreExactAfterAnySequenceOfWrites() async throws {
        var random = SeededRandom.printed()
        try await withFixture { fixture in
            var model: [UserKey: [(id: [UInt8], usedAt: Int64)]] = [:]
            for step in 0..<400 {
                let uid: Text = ["u", "u1", "u2"][random.below(3)]
                let key = UserKey("acme", uid)
                if random.below(4) == 0, let victim = model[key]?.randomElement(using: &random) {
                    let id = victim.id
                    try await fixture.store.write { try $0.removeSession(id, of: key) }
                    model[key]?.removeAll { $0.id == id }
                } else {
                    // No two sessions are used at the same moment: nobody could say which of them goes.
                    let usedAt = Timestamp(microseconds: Int64(random.below(1_000)) * 1_000 + Int64(step))
                    try await insert(step, uid: uid, usedAt: usedAt, sessionsMax: 5, in: fixture)
                    if (model[key]?.count ?? 0) >= 5, let oldest = model[key]?.min(by: { $0.usedAt < $1.usedAt }) {
                        model[key]?.removeAll { $0.id == oldest.id }
                    }
                    model[key, default: []].append((id(step), usedAt.microseconds))
                }
            }
            for (key, sessions) in model {
                #expect(try sessionIDs(of: key, in: fixture) == Set(sessions.map(\.id)))
            }
            let all = Set(model.values.flatMap { $0 }.map(\.id))
            #expect(Set(try fixture.rows(Tables.sessions).keys) == all)
        }
    }
}

@Suite struct RefreshWritesTests {
    private let settings = tenantSettings()
    private let sessionID = [UInt8](repeating: 3, count: 16)

    private func prepare(_ fixture: Fixture) async throws {
        try await fixture.makeTenant()
        let (now, settings, sessionID) = (fixture.now, settings, sessionID)
        try await fixture.store.write { transaction in
            try transaction.insert(account("u1"), origin: .server, now: now)
            let session = StoredSession(
                tenantID: "acme", uid: "u1", createdAtMicros: now.microseconds, counter: 5,
                lastUsedAtMicros: now.microseconds)
            try transaction.insertSession(session, id: sessionID, sessionsMax: 9, settings: settings, now: now)
        }
    }

    private func refresh(
        _ counter: UInt64, of key: UserKey = UserKey("acme", "u1"), in fixture: Fixture
    ) async throws -> DecidedRefresh {
        let (token, settings) = (RefreshToken(sessionID: sessionID, counter: counter), settings)
        let now = fixture.now
        return try await fixture.store.write {
            try $0.refresh(token, of: key, attemptHash: [], settings: settings, now: now, clockDifference: .zero)
        }
    }

    private func session(_ fixture: Fixture) throws -> StoredSession? {
        try fixture.store.read { try $0.get(Tables.sessions, SessionKey(sessionID)) }
    }

    @Test func aRotationWritesTheSessionAndNoEvent() async throws {
        try await withFixture { fixture in
            try await prepare(fixture)
            fixture.clock.advance(by: .minutes(1))
            let decided = try await refresh(5, in: fixture)
            #expect(decided.session.counter == 6 && decided.decision == .rotated(decided.session))
            #expect(try session(fixture) == decided.session)
            #expect(decided.user.uid == "u1")
            #expect(try fixture.events(of: "acme") == ["userCreated"])
        }
    }

    @Test func aReplayIsWrittenWithAnEvent() async throws {
        try await withFixture { fixture in
            try await prepare(fixture)
            let decided = try await refresh(2, in: fixture)
            #expect(decided.decision == .revokedByReuse(decided.session))
            #expect(try session(fixture)?.end == .reuse)
            #expect(try fixture.events(of: "acme") == ["userCreated", "sessionRevoked refresh token reuse"])
            #expect(try await refresh(5, in: fixture).decision == .refused(.revokedByReuse))
            #expect(try fixture.events(of: "acme").count == 2)
        }
    }

    @Test func aTokenIsGoodForItsOwnUserOnly() async throws {
        try await withFixture { fixture in
            try await prepare(fixture)
            for key in [UserKey("acme", "u2"), UserKey("other", "u1"), UserKey("", "u1")] {
                #expect(await refusal { _ = try await refresh(5, of: key, in: fixture) } == "INVALID_REFRESH_TOKEN")
            }
            #expect(try session(fixture)?.counter == 5)
        }
    }

    @Test func aUserWhoIsGoneOrDisabledIsRefused() async throws {
        try await withFixture { fixture in
            try await prepare(fixture)
            let now = fixture.now
            try await fixture.store.write { transaction in
                try transaction.replace(
                    account("u1"), by: account("u1") { $0.disabled = true }, origin: .server, kind: .userUpdated,
                    now: now)
            }
            #expect(await refusal { _ = try await refresh(5, in: fixture) } == "USER_DISABLED")
            try await fixture.store.write { try $0.delete(Tables.users, UserKey("acme", "u1")) }
            #expect(await refusal { _ = try await refresh(5, in: fixture) } == "USER_NOT_FOUND")
            #expect(try session(fixture)?.counter == 5)
        }
    }
}
