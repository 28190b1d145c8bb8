import Base
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Sums of tenants' space that are lost or damaged, in a store and in a cluster.
@Suite struct UnknownUsageTests {
    private static let owned = JournaledNodes.owned
    /// The sums as bytes, to put something into their place that is none.
    private static let sums = Table<TenantPrefix, [UInt8]>(
        id: Schema.tenantUsage.id, name: Schema.tenantUsage.name, owner: .nobody, purge: .noTenant)

    private static func spoil(
        _ tenantID: Text, isLost: Bool, _ transaction: borrowing WriteTransaction
    ) throws {
        if isLost {
            try transaction.delete(sums, TenantPrefix(tenantID))
        } else {
            // The length of a field that is not there.
            try transaction.put(sums, TenantPrefix(tenantID), [0x0A, 0x7F])
        }
    }

    /// A node has to make the writes of all others. The sums are each node's own.
    @Test(arguments: [true, false])
    func `A node whose sums are spoilt makes another node's writes, and counts anew`(_ isLost: Bool) async throws {
        try await withJournaledNodes(2) { cluster in
            let (first, second) = (cluster.nodes[0].store, cluster.nodes[1].store)
            try await first.write { transaction in
                for id in UInt64(1)...2 {
                    try transaction.put(Self.owned, UserKey(tenant: "stays", id: id), [1])
                    try transaction.put(Self.owned, UserKey(tenant: "goes", id: id), [1])
                }
            }
            try await cluster.catchUp()
            try await second.write { transaction in
                try Self.spoil("stays", isLost: isLost, transaction)
                try Self.spoil("goes", isLost: isLost, transaction)
            }
            try await first.write { transaction in
                try transaction.put(Self.owned, UserKey(tenant: "stays", id: 3), [1])
                for id in UInt64(1)...2 { try transaction.delete(Self.owned, UserKey(tenant: "goes", id: id)) }
            }
            try await cluster.catchUp()
            #expect(cluster.nodes[1].failure.error == nil)
            #expect(try second.read { try $0.usage(ofTenant: "stays") }.isUnknown)
            #expect(try await second.countUnknownUsage() == ["stays", "goes"])
            // A tenant without rows has no sum on either node.
            #expect(try cluster.contents(0) == cluster.contents(1))
        }
    }

    /// As a backup is that was taken in this moment, which a restore would refuse.
    @Test func `A store that was stopped before it counted is sound, and counts after the next write`() throws {
        try withTemporaryDirectory { directory in
            func report() throws -> StoreReport {
                try StoreReport(
                    StoreConfiguration(directory: directory, tables: JournaledNodes.tables),
                    authenticator: TestAuthenticator(), eventHash: testEventHash, records: { _, _ in })
            }
            func put(_ id: UInt64, losingSum isLost: Bool) throws -> Set<Text> {
                let store = try openTestStore(at: directory, tables: JournaledNodes.tables)
                defer { store.close() }
                try store.writeBlocking { try $0.put(Self.owned, UserKey(tenant: "a", id: id), [1]) }
                if isLost { try store.writeBlocking { try Self.spoil("a", isLost: true, $0) } }
                return store.environment.tenantsToCount.withLock { $0 }
            }
            let first = try put(1, losingSum: true)
            #expect(first.isEmpty)
            // Nobody has noticed it yet.
            let lost = try report()
            #expect(!lost.isSound)
            let second = try put(2, losingSum: false)
            #expect(second == ["a"])
            let unknown = try report()
            #expect(unknown.isSound)
            let third = try put(3, losingSum: false)
            #expect(third == ["a"])
        }
    }
}
