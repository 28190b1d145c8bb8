import Base
import Messages
import Store
import Synchronization
import Testing

@testable import Identity

/// What a deleted tenant leaves, table by table; tables that are declared later are covered, too.
@Suite struct TablePurgeTests {
    /// The tables whose rows of a deleted tenant stay, and why.
    private static let staying = [
        // A tombstone: an id is never used again.
        Tables.tenants.id,
        // Verifiers refuse tokens by these rows until the last token has expired.
        Tables.revocations.id,
        // A repeated Delete is answered from these rows for a day.
        Tables.idempotency.id,
    ]

    /// A table by its id alone.
    private static func plain(_ declaration: TableDeclaration) -> Table<[UInt8], [UInt8]> {
        Table(id: declaration.id, name: declaration.name, owner: declaration.owner, purge: declaration.purge)
    }

    /// Puts `count` rows into every table whose keys begin with a tenant, and `count` sessions.
    private static func fill(_ transaction: borrowing WriteTransaction, tenantID: Text, count: Int) throws {
        for number in 0..<count {
            let name = [UInt8]("row \(number)".utf8)
            for table in Tables.all where table.owner.isKeyPrefix && table.id != Tables.tenants.id {
                let key: [UInt8]
                if table.id == Tables.sessionByUser.id {
                    let id = [UInt8](repeating: 7, count: 8 - tenantID.byteCount) + tenantID.bytes + name
                    key = UserSessionKey(tenantID, "ann", id).bytes
                    let session = StoredSession(tenantID: tenantID, uid: "ann")
                    try transaction.put(Tables.sessions, SessionKey(id), session)
                } else {
                    key = TenantPrefix(tenantID).bytes + name
                }
                try transaction.put(plain(table), key, name)
            }
            try transaction.appendEvent(.userUpdated, tenantID: tenantID, origin: .server, now: .zero)
        }
    }

    private static func rowCounts(_ fixture: Fixture, tenantID: Text) throws -> [UInt8: Int] {
        try fixture.store.read { transaction in
            var counts: [UInt8: Int] = [:]
            for table in Tables.all where table.owner.isKeyPrefix {
                try transaction.scan(plain(table), prefix: TenantPrefix(tenantID)) { _ in
                    counts[table.id, default: 0] += 1
                    return true
                }
            }
            try transaction.scan(Tables.sessions) { row in
                if try row.record.tenantID == tenantID { counts[Tables.sessions.id, default: 0] += 1 }
                return true
            }
            return counts
        }
    }

    @Test func `A tenant of many rows goes in slices, and the writes of others go on between them`() async throws {
        try await withFixture { fixture in
            for tenantID in ["acme", "b"] as [Text] { try await fixture.makeTenant(tenantID) }
            let count = 5_000
            try await fixture.store.write { transaction in
                try Self.fill(transaction, tenantID: "acme", count: count)
            }
            let table = Self.plain(try #require(Tables.all.first { $0.id == Tables.userByCreation.id }))
            let before = try fixture.store.statistics().commits
            let isDone = Mutex(false)
            let directory = fixture.tenantDirectory()
            let deletion = Task {
                defer { isDone.withLock { $0 = true } }
                try await directory.tenant("acme").delete(validateOnly: false, origin: .server)
            }
            var leftBetween: Set<Int> = []
            while !isDone.withLock({ $0 }) {
                try await fixture.store.write { transaction in
                    try transaction.appendEvent(.userUpdated, tenantID: "b", origin: .server, now: .zero)
                }
                var left = 0
                try fixture.store.read { transaction in
                    try transaction.scan(table, prefix: TenantPrefix("acme")) { _ in
                        left += 1
                        return true
                    }
                }
                leftBetween.insert(left)
            }
            try await deletion.value
            // The purge takes slices of 500 rows of each table: the writes of b came in between.
            #expect(leftBetween.count { $0 > 0 && $0 < count } >= 3, "\(leftBetween)")
            #expect(try fixture.store.statistics().commits - before >= UInt64(count / 500))
            #expect(try Self.rowCounts(fixture, tenantID: "acme")[Tables.userByCreation.id] == nil)
        }
    }

    @Test func aDeletedTenantLeavesNoRowInAnyTable() async throws {
        try await withFixture { fixture in
            let tenants: [Text] = ["acme", "acme2", "", "b"]
            for tenantID in tenants { try await fixture.makeTenant(tenantID) }
            try await fixture.store.write { transaction in
                for tenantID in tenants { try Self.fill(transaction, tenantID: tenantID, count: 600) }
            }
            let others = try tenants.dropFirst().map { try Self.rowCounts(fixture, tenantID: $0) }
            try await fixture.tenantDirectory().tenant("acme").delete(validateOnly: false, origin: .server)
            let left = try Self.rowCounts(fixture, tenantID: "acme")
            for table in Tables.all where !Self.staying.contains(table.id) {
                #expect(left[table.id] == nil, "rows of a deleted tenant are left in \(table.name)")
            }
            #expect(left[Tables.tenants.id] == 1)
            let othersAfter = try tenants.dropFirst().map { try Self.rowCounts(fixture, tenantID: $0) }
            #expect(othersAfter == others)
            #expect(try fixture.events(of: "acme").isEmpty)
            let checkpoint = try fixture.store.read { try $0.eventCheckpoint(tenant: "acme") }
            #expect(checkpoint?.head.sequence == 600)
            for (tenantID, count) in zip(tenants, [0, 600, 601, 600]) {
                let status = try fixture.store.read { try $0.verifyEvents(tenant: tenantID) }
                #expect(status == .intact(count: count))
            }
        }
    }

    @Test func everyRowThatSaysWhoseItIsSaysHowItGoes() {
        for table in Tables.all {
            switch (table.owner, table.purge) {
            case (.nobody, .noTenant), (.keyPrefix, .withTenant), (.countedKeyPrefix, .withTenant),
                (.keyPrefix, .otherwise), (.field, .otherwise):
                break
            default: Issue.record("\(table.name): its owner and the way its rows go do not fit each other")
            }
        }
    }
}
