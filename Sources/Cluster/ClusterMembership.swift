public import Base
public import Crypto
import Journal
public import Store

/// Lets a store join or leave a cluster, while the store's server is stopped.
public enum ClusterMembership {
    /// Makes the store the beginning of a new cluster: the tables in the engine, and the store's place at entry 0.
    ///
    /// `store` is open without a journal. A store whose upgrade was put off is refused. The engine's tables are made
    /// first: if the store's place is not written then, the store is as it was, and the tables without a node only stop
    /// the next try. At last a snapshot is made, so that other nodes can join at once. If that fails
    /// (`ClusterProblem.noSnapshot`), the first node that serves makes one.
    @available(*, noasync, message: "blocks the thread")
    public static func begin(
        with store: Store, at address: JournalAddress, masterKey: MasterKey, random: RandomSource, limits: Limits
    ) throws {
        guard try store.journalPlace() == nil else { throw ClusterProblem.isMember }
        // A step of an upgrade is one write. In a cluster a write has to fit into an entry, and such a step may not.
        guard !store.isUpgradePutOff else { throw ClusterProblem.upgradePutOff }
        let id = random.bytes(JournalPlace.clusterIDByteCount)
        let seal = JournalSeal(clusterID: id, masterKey: masterKey, random: random)
        let connection = try address.connect(timeout: limits.journal.answerTimeout)
        try address.require(connection)
        let tables = ClusterTables(connection, address)
        guard try tables.readID() == nil else { throw ClusterProblem.exists(schema: address.schema) }
        try tables.begin(seal)
        let place = JournalPlace(clusterID: id, mark: seal.beginning)
        try store.writeBlocking { try $0.setJournalPlace(Optional(place)) }
        do {
            _ = try SnapshotMaker(address: address, seal: seal, random: random, limits: limits).make(of: store) { true }
        } catch {
            throw ClusterProblem.noSnapshot("\(error)")
        }
    }

    /// Takes the node out of the cluster's list. Then entries of the journal that only this node needs may be trimmed.
    @available(*, noasync, message: "blocks the thread")
    public static func unregister(
        _ nodeID: [UInt8], of clusterID: [UInt8], at address: JournalAddress, masterKey: MasterKey, limits: Limits
    ) throws {
        let seal = JournalSeal(clusterID: clusterID, masterKey: masterKey, random: .system)
        let connection = try address.connect(to: seal, timeout: limits.journal.answerTimeout)
        try NodeTables(ClusterTables(connection, address), limits.journal).remove(nodeID)
    }

    /// Makes the store independent of any cluster again. It keeps its contents.
    @available(*, noasync, message: "blocks the thread")
    public static func leave(_ store: Store) throws {
        try store.writeBlocking { try $0.setJournalPlace(nil) }
    }
}
