import Base
import Crypto
import Synchronization
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// Which stores may begin a cluster.
@Suite struct ClusterMembershipTests {
    /// A step of an upgrade that is larger than an entry of the journal could never be made there.
    @Test func aStoreWhoseUpgradeWasPutOffBeginsNoCluster() throws {
        try withTemporaryStore(tables: [LocalEngine.values.declaration]) { store in
            // As if the store were from an older server, and too full.
            store.isUpgradePending.store(true, ordering: .relaxed)
            // No engine listens there: the store is refused before anything is made in an engine.
            let address = try JournalAddress("postgresql://postern@127.0.0.1:1/postgres")
            let refusal = #expect(throws: ClusterProblem.self) {
                try ClusterMembership.begin(
                    with: store, at: address, masterKey: .generate(random: .system), random: .system, limits: Limits())
            }
            #expect(refusal?.description.contains("too full to be upgraded") == true)
            #expect(try store.journalPlace() == nil)
        }
    }
}
