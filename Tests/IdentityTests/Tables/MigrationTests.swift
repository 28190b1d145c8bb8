import Base
import Crypto
import Glibc
import Messages
import Rules
import Store
import TestSupport
import Testing

@testable import Identity

/// Stores that older servers made, as they lie in Tests/Fixtures.
@Suite struct MigrationTests {
    private static let fixtures: String = {
        let folders = #filePath.split(separator: "/").dropLast(3)
        return "/" + folders.joined(separator: "/") + "/Fixtures"
    }()

    /// Copies a store to `directory` and returns its master key.
    private static func unpack(_ name: String, to directory: String) throws -> MasterKey {
        let source = "\(fixtures)/\(name)"
        let command = "gunzip -c \(source)/data.mdb.gz > \(directory)/data.mdb && cp \(source)/witness \(directory)/"
        try #require(try ChildProcess("/bin/sh", ["-c", command]).wait() == 0)
        chmod("\(directory)/data.mdb", 0o600)
        let digits = try #require(readFile("\(source)/master-key"))
        return try MasterKey(Secret(try #require(Hex.decode(Array(digits.prefix(64))))))
    }

    private static func open(_ directory: String, _ key: MasterKey) throws -> Store {
        var configuration = StoreConfiguration(directory: directory, tables: Tables.all)
        configuration.mapByteCount = 256 << 20
        configuration.migrations = Migration.domain
        return try Store(
            configuration, authenticator: RecordMACs(masterKey: key), eventHash: RecordMACs.eventHash
        ) { _ in }
    }

    /// Version 3: acme has carl, bob and ann, created in this order, and had another user; the default pool has dora.
    @Test func `Users of a store of version 3 are counted and put in order`() async throws {
        try await withTemporaryDirectory { directory in
            let key = try Self.unpack("store-of-version-3", to: directory)
            for _ in 0..<2 {
                try await withFixture(at: directory, open: { try Self.open($0, key) }) { fixture in
                    try fixture.store.read { transaction in
                        #expect(try transaction.hasUserIndexes())
                        let counts = try ["acme", ""].map { try transaction.usage(ofTenant: $0).countedRowCount }
                        #expect(counts == [3, 1])
                        var uids: [Text] = []
                        try transaction.scan(Tables.userByCreation, prefix: TenantPrefix("acme")) { row in
                            uids.append(try row.key.uid)
                            return true
                        }
                        #expect(uids == ["carl", "bob", "ann"])
                    }
                }
            }
            let report = try StoreReport(
                StoreConfiguration(directory: directory, tables: Tables.all),
                authenticator: RecordMACs(masterKey: key), eventHash: RecordMACs.eventHash, records: RecordAudit.run)
            #expect(report.isSound, "\(report.lines)")
        }
    }

    private static func report(_ directory: String, _ key: MasterKey) throws -> StoreReport {
        try StoreReport(
            StoreConfiguration(directory: directory, tables: Tables.all),
            authenticator: RecordMACs(masterKey: key), eventHash: RecordMACs.eventHash, records: RecordAudit.run)
    }

    /// Version 4: the settings of acme, an event and a kept answer have about 8,300 bytes, which are not in pieces.
    @Test func `The long values of a store of version 4 stay, and lie in pieces when they are put again`() async throws
    {
        try await withTemporaryDirectory { directory in
            let key = try Self.unpack("store-of-version-4", to: directory)
            // Also before the upgrade, everything is compared.
            let before = try Self.report(directory, key)
            #expect(before.isSound && before.lines.contains { $0.contains("sums and indexes") }, "\(before.lines)")
            try await withFixture(at: directory, open: { try Self.open($0, key) }) { fixture in
                let store = fixture.store
                #expect(try store.read { try $0.verifyEvents(tenant: "acme") } == .intact(count: 4))
                let found = try store.read { try $0.get(Tables.tenants, TenantPrefix("acme")) }
                let tenant = try #require(found)
                #expect(tenant.encodedByteCount > 8_000)
                try await store.write { try $0.put(Tables.tenants, TenantPrefix("acme"), tenant) }
                let again = try store.read { try $0.get(Tables.tenants, TenantPrefix("acme")) }
                #expect(again?.encodedByteCount == tenant.encodedByteCount)
            }
            let report = try Self.report(directory, key)
            #expect(report.isSound && report.lines.contains("pieces: 3 rows"), "\(report.lines)")
        }
    }

    /// Version 2: the tenant acme with ann and bob; the tenant gone, with carl, was deleted and has left its events.
    @Test func aStoreOfVersion2IsUpgraded() async throws {
        try await withTemporaryDirectory { directory in
            let key = try Self.unpack("store-of-version-2", to: directory)
            for _ in 0..<2 {
                try await withFixture(at: directory, open: { try Self.open($0, key) }) { fixture in
                    #expect(!fixture.store.isUpgradePutOff)
                    let tenants = fixture.tenantDirectory()
                    try await tenants.start()
                    // The first sweep does this.
                    try await tenants.finishSomeDeletions()
                    let store = fixture.store
                    for email in ["ann@example.com", "bob@example.com"] as [Text] {
                        let email = try #require(Email(stored: email))
                        #expect(try store.read { try $0.uid(ofEmail: email, tenantID: "acme") } != nil)
                    }
                    #expect(try store.read { try $0.verifyEvents(tenant: "acme") } == .intact(count: 3))
                    #expect(try store.read { try $0.verifyEvents(tenant: "gone") } == .intact(count: 0))
                    #expect(try store.read { try $0.eventCheckpoint(tenant: "gone") } != nil)
                    let tombstone = try store.read { try $0.get(Tables.tenants, TenantPrefix("gone")) }
                    #expect(tombstone?.purged == true)
                    #expect(try fixture.events(of: "gone").isEmpty)
                }
            }
            let report = try StoreReport(
                StoreConfiguration(directory: directory, tables: Tables.all),
                authenticator: RecordMACs(masterKey: key), eventHash: RecordMACs.eventHash, records: RecordAudit.run)
            #expect(report.isSound, "\(report.lines)")
        }
    }
}
