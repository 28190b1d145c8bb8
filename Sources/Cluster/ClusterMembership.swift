public import Base
public import Crypto
import Journal
public import Store

/// How a store becomes part of a cluster, and leaves it. While the server of the store is stopped.
public enum ClusterMembership {
    /// Makes the store the beginning of a new cluster: the tables in the engine, and the store's place at entry 0.
    ///
    /// `store` is open without a journal. The engine comes first: a store whose place was not written is as it was, and
    /// the tables without a node are in the way of the next try only.
    @available(*, noasync, message: "blocks the thread")
    public static func begin(
        with store: Store, at address: JournalAddress, masterKey: MasterKey, random: RandomSource, limits: Limits
    ) throws {
        guard try store.journalPlace() == nil else { throw ClusterProblem.isMember }
        let id = random.bytes(JournalPlace.clusterIDByteCount)
        let seal = JournalSeal(clusterID: id, masterKey: masterKey, random: random)
        let connection = try address.connect(timeout: limits.journal.answerTimeout)
        let tables = ClusterTables(connection, address)
        guard try tables.readID() == nil else { throw ClusterProblem.exists(schema: address.schema) }
        try tables.begin(seal)
        let place = JournalPlace(clusterID: id, mark: seal.beginning)
        try store.writeBlocking { try $0.setJournalPlace(Optional(place)) }
    }

    /// Makes the store one of its own again. It keeps what it has.
    @available(*, noasync, message: "blocks the thread")
    public static func leave(_ store: Store) throws {
        try store.writeBlocking { try $0.setJournalPlace(nil) }
    }
}

public enum ClusterProblem: Error, CustomStringConvertible, Sendable {
    case isMember
    case exists(schema: String)

    public var description: String {
        switch self {
        case .isMember: "the store belongs to a cluster already"
        case .exists(let schema): "the schema \(schema) holds a cluster already: name another one"
        }
    }
}
