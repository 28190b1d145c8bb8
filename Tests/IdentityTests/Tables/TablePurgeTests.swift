import Base
import Messages
import Synchronization
import TestSupport
import Testing

@testable import Identity
@testable import Store

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

    /// A record of any message type whose text field `field` holds the tenant's id.
    private static func record(naming tenantID: Text, in field: Int) -> [UInt8] {
        let tag = field << 3 | 2
        let encodedTag = tag < 128 ? [UInt8(tag)] : [UInt8(tag & 127) | 128, UInt8(tag >> 7)]
        return encodedTag + [UInt8(tenantID.byteCount)] + tenantID.bytes
    }

    /// Puts `count` rows into every table whose rows have a tenant.
    private static func fill(_ transaction: borrowing WriteTransaction, tenantID: Text, count: Int) throws {
        for number in 0..<count {
            let name = [UInt8]("row \(number)".utf8)
            // No other tenant's row has this id.
            let id = [UInt8](repeating: 7, count: 8 - tenantID.byteCount) + tenantID.bytes + name
            for table in Tables.all where table.id != Tables.tenants.id {
                switch table.owner {
                case .nobody: break
                case .keyPrefix, .countedKeyPrefix:
                    // By these rows, the sessions of a deleted tenant are found.
                    let isOfSession = table.id == Tables.sessionByUser.id
                    let key =
                        isOfSession ? UserSessionKey(tenantID, "ann", id).bytes : TenantPrefix(tenantID).bytes + name
                    try transaction.put(plain(table), key, name)
                case .field(let field):
                    try transaction.put(plain(table), id, record(naming: tenantID, in: field))
                }
            }
            try transaction.appendEvent(.userUpdated, tenantID: tenantID, origin: .server, now: .zero)
        }
    }

    private static func rowCounts(_ fixture: Fixture, tenantID: Text) throws -> [UInt8: Int] {
        try fixture.store.read { transaction in
            var counts: [UInt8: Int] = [:]
            for table in Tables.all where table.owner != .nobody {
                let prefix = table.owner.isKeyPrefix ? TenantPrefix(tenantID).bytes : []
                try transaction.scan(plain(table), prefix: prefix) { row in
                    let owner = try row.key.withUnsafeBytes { key in
                        table.owner.tenant(key: key, payload: row.value).map { [UInt8]($0) }
                    }
                    if owner == tenantID.bytes { counts[table.id, default: 0] += 1 }
                    return true
                }
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
            let before = try Self.rowCounts(fixture, tenantID: "acme")
            for table in Tables.all where table.owner != .nobody && table.id != Tables.tenants.id {
                #expect(before[table.id] == 600, "\(table.name)")
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

    /// Finds the rows damaged that it is told of.
    private final class DamagedRows: RecordAuthenticator {
        private let inner = TestAuthenticator()
        private let keys = Mutex<Set<[UInt8]>>([])

        func damage(_ tableID: UInt8, _ key: [UInt8]) { keys.withLock { _ = $0.insert([tableID] + key) } }

        func tag(
            table: UInt8, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
        ) -> (UInt64, UInt64) {
            let row = [table] + [UInt8](key)
            let isDamaged = keys.withLock { $0.contains(row) }
            let (first, second) = inner.tag(table: table, key: key, value: value)
            return (isDamaged ? ~first : first, second)
        }

        /// Two rows of each table of those that `fill` makes, in different slices of a purge.
        func damageRows(ofTenant tenantID: Text) {
            for name in ["row 0", "row 9"] {
                let id = [UInt8](repeating: 7, count: 8 - tenantID.byteCount) + tenantID.bytes + [UInt8](name.utf8)
                damage(Tables.sessions.id, id)
                damage(Tables.sessionByUser.id, UserSessionKey(tenantID, "ann", id).bytes)
                for table in Tables.all {
                    guard case .withTenant = table.purge else { continue }
                    damage(table.id, TenantPrefix(tenantID).bytes + [UInt8](name.utf8))
                }
            }
        }
    }

    @Test func `A purge deletes damaged rows, and names each of their tables once`() async throws {
        let rows = DamagedRows()
        let open = { (directory: String) throws -> Store in
            var configuration = StoreConfiguration(directory: directory, tables: Tables.all)
            configuration.mapByteCount = 256 << 20
            return try Store(configuration, authenticator: rows, eventHash: testEventHash, onFatal: { _ in })
        }
        try await withFixture(open: open) { fixture in
            try await fixture.makeTenant("acme")
            try await fixture.store.write { transaction in
                try Self.fill(transaction, tenantID: "acme", count: 40)
            }
            rows.damageRows(ofTenant: "acme")
            for sequence in [3, 40] as [UInt64] {
                rows.damage(Schema.events.id, EventKey(tenant: "acme", sequence: sequence).bytes)
            }
            let told = Mutex<[String]>([])
            try await fixture.store.purgeTenant("acme", now: fixture.now) { table in
                told.withLock { $0.append(table) }
            }
            let left = try Self.rowCounts(fixture, tenantID: "acme")
            for table in Tables.all where !Self.staying.contains(table.id) {
                #expect(left[table.id] == nil, "rows of a deleted tenant are left in \(table.name)")
            }
            let purged = Tables.all.filter { if case .withTenant = $0.purge { true } else { false } }
            let expected = purged.map(\.name.description) + ["session_by_user", "events"]
            #expect(told.withLock { $0.sorted() } == expected.sorted())
            let checkpoint = try fixture.store.read { try $0.eventCheckpoint(tenant: "acme") }
            #expect(checkpoint?.head.sequence == 40)
            #expect(try fixture.store.read { try $0.verifyEvents(tenant: "acme") } == .intact(count: 0))
        }
    }

    @Test func everyRowThatSaysWhoseItIsSaysHowItGoes() {
        for table in Tables.all {
            switch (table.owner, table.purge) {
            case (.nobody, .noTenant), (.nobody, .otherwise), (.keyPrefix, .withTenant),
                (.countedKeyPrefix, .withTenant), (.keyPrefix, .otherwise), (.field, .otherwise):
                break
            default: Issue.record("\(table.name): its owner and the way its rows go do not fit each other")
            }
        }
    }
}
