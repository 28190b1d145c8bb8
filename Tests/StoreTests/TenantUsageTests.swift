import Base
import Messages
import TestSupport
import Testing

@testable import Store

/// The running totals of tenants' rows equal what counting the rows gives, whatever was put, replaced, deleted,
/// thrown or run again.
@Suite struct TenantUsageTests {
    private struct Refused: Error {}

    /// Tables whose keys name the owner, whose keys do not, and whose rows belong to nobody.
    private static let keyed = Table<UserKey, [UInt8]>(
        id: 30, name: "keyed", owner: .countedKeyPrefix, purge: .withTenant)
    private static let byField = Table<[UInt8], StoredSession>(
        id: 31, name: "by_field", owner: .field(1), purge: .otherwise("a test's"))
    private static let nobodys = Table<[UInt8], [UInt8]>(id: 32, name: "nobodys", owner: .nobody, purge: .noTenant)
    private static let tables = [keyed.declaration, byField.declaration, nobodys.declaration]

    private static func totals(_ store: Store) throws -> [[UInt8]: TenantUsage] {
        try store.read { transaction in
            var totals: [[UInt8]: TenantUsage] = [:]
            try transaction.scan(Schema.tenantUsage) { row in
                let tenant = try row.key.tenant
                totals[tenant.bytes] = try transaction.usage(ofTenant: tenant)
                return true
            }
            return totals
        }
    }

    private static func change(
        _ transaction: borrowing WriteTransaction, _ generator: inout SeededGenerator
    ) throws {
        let tenants: [Text] = ["", "acme", "acme2", "b"]
        let tenant = tenants[generator.below(tenants.count)]
        let id = UInt64(generator.below(12))
        switch generator.below(8) {
        case 0, 1: try transaction.put(keyed, UserKey(tenant: tenant, id: id), generator.bytes(generator.below(300)))
        case 2: _ = try transaction.put(ifAbsent: keyed, UserKey(tenant: tenant, id: id), generator.bytes(9))
        case 3: try transaction.delete(keyed, UserKey(tenant: tenant, id: id))
        case 4:
            // The key determines the owner here: a row never changes its owner.
            let name = Text("device \(String(repeating: "x", count: generator.below(200)))")
            let session = StoredSession(tenantID: tenants[Int(id) % tenants.count], uid: "u", deviceName: name)
            try transaction.put(byField, [UInt8(id)], session)
        case 5: try transaction.delete(byField, [UInt8(id)])
        case 6: try transaction.put(nobodys, [UInt8(id)], generator.bytes(50))
        default: try transaction.appendEvent(tenant: tenant, generator.bytes(40))
        }
    }

    @Test func `Totals are what counting gives, with refused writes and writes that run again`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        try withTemporaryStore(tables: Self.tables) { store in
            for round in 0..<300 {
                let changes = 1 + generator.below(6)
                let isRefused = generator.below(4) == 0
                let body = generator
                _ = try? store.writeBlocking { transaction in
                    var generator = body
                    for _ in 0..<changes { try Self.change(transaction, &generator) }
                    if isRefused { throw Refused() }
                }
                _ = generator.next()
                let counted = try store.read { try $0.countedUsage() }
                #expect(try Self.totals(store) == counted, "round \(round), seed \(seed)")
            }
        }
    }

    @Test func `What a store of an older server holds is counted when it is opened`() throws {
        try withTemporaryDirectory { directory in
            let first = try openTestStore(at: directory, tables: Self.tables)
            try first.writeBlocking { try $0.put(Self.keyed, UserKey(tenant: "acme", id: 1), [1, 2, 3]) }
            let expected = try Self.totals(first)
            try first.writeBlocking { transaction in
                try transaction.delete(Schema.tenantUsage, TenantPrefix("acme"))
                try transaction.put(Schema.meta, Migration.upgradedKey, [0, 0, 0, 1])
            }
            #expect(try Self.totals(first).isEmpty)
            first.close()
            let second = try openTestStore(at: directory, tables: Self.tables)
            defer { second.close() }
            #expect(try Self.totals(second) == expected)
            let row = expected[[UInt8]("acme".utf8)]
            // A key of 13 bytes, a seal of 17, a value of 3, and 16 of LMDB's own.
            #expect(row == TenantUsage(byteCount: 49, rowCount: 1, countedRowCount: 1))
        }
    }

    /// A total that began at zero would begin the tenant's quota anew.
    @Test func `A total that is lost is counted after the tenant's next write`() async throws {
        try await withTemporaryStore(tables: Self.tables) { store in
            try await store.write { transaction in
                for id in UInt64(1)...3 { try transaction.put(Self.keyed, UserKey(tenant: "lost", id: id), [1, 2, 3]) }
                try transaction.put(Self.keyed, UserKey(tenant: "kept", id: 1), [1])
            }
            try await store.write { _ = try $0.delete(Schema.tenantUsage, TenantPrefix("lost")) }
            for tenant in ["lost", "kept", "new"] as [Text] {
                try await store.write { transaction in
                    try transaction.put(Self.keyed, UserKey(tenant: tenant, id: 4), [1])
                    try transaction.appendEvent(tenant: tenant, [1])
                }
            }
            #expect(try store.read { try $0.usage(ofTenant: "lost") }.isUnknown)
            #expect(try await store.countUnknownUsage() == ["lost"])
            #expect(try Self.totals(store) == store.read { try $0.countedUsage() })
            // The last row of a tenant takes its total with it, and the next one is the first again.
            for _ in 0..<2 {
                try await store.write { try $0.put(Self.keyed, UserKey(tenant: "brief", id: 1), [1]) }
                try await store.write { _ = try $0.delete(Self.keyed, UserKey(tenant: "brief", id: 1)) }
            }
            #expect(try await store.countUnknownUsage().isEmpty)
            #expect(try Self.totals(store) == store.read { try $0.countedUsage() })
        }
    }

    /// Makes a store from before there were totals: `tenants` with one row each, and what `change` adds.
    private static func makeUncounted(
        at directory: String, mapByteCount: Int = 256 << 20, tenants: [Text],
        _ change: (Store) throws -> Void = { _ in }
    ) throws -> [[UInt8]: TenantUsage] {
        let store = try openTestStore(at: directory, tables: tables) { $0.mapByteCount = mapByteCount }
        defer { store.close() }
        try store.writeBlocking { transaction in
            for tenant in tenants {
                try transaction.put(keyed, UserKey(tenant: tenant, id: 1), [UInt8](repeating: 0xA1, count: 200))
            }
        }
        let expected = try totals(store)
        try store.writeBlocking { transaction in
            for tenant in tenants { try transaction.delete(Schema.tenantUsage, TenantPrefix(tenant)) }
            try transaction.put(Schema.meta, Migration.upgradedKey, [0, 0, 0, 1])
        }
        try change(store)
        return expected
    }

    @Test func `A damaged row is counted as it lies there, and does not keep the store from starting`() throws {
        try withTemporaryDirectory { directory in
            let expected = try Self.makeUncounted(at: directory, tenants: ["acme"])
            var file = contents(of: directory + "/data.mdb")
            let value = [UInt8](repeating: 0xA1, count: 200)
            // The copies that LMDB left behind are damaged as well.
            for start in file.indices.dropLast(200) where file[start..<start + 200].elementsEqual(value) {
                file[start + 100] ^= 1
            }
            write(file, to: directory + "/data.mdb")
            let store = try openTestStore(at: directory, tables: Self.tables)
            defer { store.close() }
            #expect(throws: StoreError.corrupt(table: "keyed")) {
                try store.read { try $0.get(Self.keyed, UserKey(tenant: "acme", id: 1)) }
            }
            #expect(try Self.totals(store) == expected)
        }
    }

    /// Rows that are written meanwhile count from nothing; the next start with room counts everything anew.
    @Test func `A full store starts without its totals, and counts them once there is room`() throws {
        try withTemporaryDirectory { directory in
            let tenants = (0..<400).map { Text("tenant\($0)") }
            var expected = try Self.makeUncounted(at: directory, mapByteCount: 1 << 20, tenants: tenants) { store in
                var byteCount = 3_000
                var key: UInt32 = 0
                while byteCount > 0 {
                    let count = byteCount
                    let name = withUnsafeBytes(of: key.bigEndian) { [UInt8]($0) }
                    do {
                        try store.writeBlocking { try $0.put(Self.nobodys, name, [UInt8](repeating: 1, count: count)) }
                        key += 1
                    } catch StoreError.full {
                        byteCount /= 2
                    }
                }
            }
            let full = try openTestStore(at: directory, tables: Self.tables) { $0.mapByteCount = 1 << 20 }
            #expect(full.isUpgradePutOff)
            #expect(try full.read { try $0.count(Self.keyed) } == 400)
            full.close()
            let roomy = try openTestStore(at: directory, tables: Self.tables)
            #expect(!roomy.isUpgradePutOff)
            #expect(try Self.totals(roomy) == expected)
            try roomy.writeBlocking { _ = try $0.delete(Self.keyed, UserKey(tenant: "tenant7", id: 1)) }
            expected[[UInt8]("tenant7".utf8)] = nil
            #expect(try Self.totals(roomy) == expected)
            roomy.close()
        }
    }

    @Test func `A call's writes are charged to its meter once, when they are committed`() async throws {
        try await withTemporaryStore(tables: Self.tables) { store in
            let meter = WriteMeter()
            try await WriteMeter.$current.withValue(meter) {
                try await store.write { try $0.put(Self.keyed, UserKey(tenant: "acme", id: 1), [1, 2, 3]) }
                #expect(meter.byteCount == 49 && meter.changeCount == 1)
                _ = try? await store.write { transaction in
                    try transaction.put(Self.keyed, UserKey(tenant: "acme", id: 2), [1])
                    throw Refused()
                }
                try await store.write { _ in }
                #expect(meter.byteCount == 49 && meter.changeCount == 1)
                try await store.write { _ = try $0.delete(Self.keyed, UserKey(tenant: "acme", id: 1)) }
                #expect(meter.byteCount == 0 && meter.changeCount == 2)
            }
            try await store.write { try $0.put(Self.keyed, UserKey(tenant: "acme", id: 3), [1]) }
            #expect(meter.changeCount == 2)
        }
    }
}
