public import Base
public import Crypto
import Journal
public import Store

/// How a store becomes part of a cluster, and leaves it. While the server of the store is stopped.
public enum ClusterMembership {
    /// Makes the store the beginning of a new cluster: the tables in the engine, and the store's place at entry 0.
    ///
    /// `store` is open without a journal. The engine comes first: a store whose place was not written is as it was, and
    /// the tables without a node are in the way of the next try only. At last a snapshot is made, so that other nodes
    /// can join at once; where that fails (`ClusterProblem.noSnapshot`), the first node that serves makes one.
    @available(*, noasync, message: "blocks the thread")
    public static func begin(
        with store: Store, at address: JournalAddress, masterKey: MasterKey, random: RandomSource, limits: Limits
    ) throws {
        guard try store.journalPlace() == nil else { throw ClusterProblem.isMember }
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

    /// Takes the node out of the cluster's list: what only it needs of the journal may be trimmed then.
    @available(*, noasync, message: "blocks the thread")
    public static func unregister(
        _ nodeID: [UInt8], of clusterID: [UInt8], at address: JournalAddress, masterKey: MasterKey, limits: Limits
    ) throws {
        let seal = JournalSeal(clusterID: clusterID, masterKey: masterKey, random: .system)
        let connection = try address.connect(to: seal, timeout: limits.journal.answerTimeout)
        try NodeTables(ClusterTables(connection, address), limits.journal).remove(nodeID)
    }

    /// Makes the store one of its own again. It keeps what it has.
    @available(*, noasync, message: "blocks the thread")
    public static func leave(_ store: Store) throws {
        try store.writeBlocking { try $0.setJournalPlace(nil) }
    }
}
