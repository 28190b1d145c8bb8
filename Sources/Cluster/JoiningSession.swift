import Base
import Crypto
import Glibc
import Store

/// A connection that is made again when it is lost, for requests that can be made twice. One thread.
final class JoiningSession {
    let seal: JournalSeal
    private let address: JournalAddress
    private let limits: Limits
    private var connection: PostgreSQLConnection?

    /// Finds out which cluster is there, and checks that the master key is the cluster's.
    init(
        _ address: JournalAddress, _ masterKey: MasterKey, _ random: RandomSource, _ limits: Limits
    ) throws {
        let connection = try address.connect(timeout: limits.journal.answerTimeout)
        try address.require(connection)
        let tables = ClusterTables(connection, address)
        guard let id = try tables.readID() else { throw ClusterProblem.absent(schema: address.schema) }
        seal = JournalSeal(clusterID: id, masterKey: masterKey, random: random)
        try tables.check(seal)
        (self.address, self.limits, self.connection) = (address, limits, connection)
    }

    func snapshots<Answer>(
        _ question: (SnapshotTables) throws(JournalEngineError) -> Answer
    ) throws(JournalEngineError) -> Answer {
        try ask { tables throws(JournalEngineError) in try question(SnapshotTables(tables, limits.journal)) }
    }

    /// Asks, and after a lost connection asks again over a new one until the patience is over.
    func ask<Answer>(
        patience: Duration? = nil, _ question: (ClusterTables) throws(JournalEngineError) -> Answer
    ) throws(JournalEngineError) -> Answer {
        let end = Instant.now.advanced(by: patience ?? limits.journal.joiningPatience)
        while true {
            do throws(JournalEngineError) {
                let connection = try connected()
                return try question(ClusterTables(connection, address))
            } catch {
                connection = nil
                guard case .connectionLost = error, Instant.now < end else { throw error }
                usleep(200_000)
            }
        }
    }

    private func connected() throws(JournalEngineError) -> PostgreSQLConnection {
        if let connection { return connection }
        let new = try address.connect(to: seal, timeout: limits.journal.answerTimeout)
        connection = new
        return new
    }
}
