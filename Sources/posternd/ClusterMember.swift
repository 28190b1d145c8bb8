import Base
import Cluster
import Crypto
import Identity
import Service
import Store

/// This server as a node of a cluster: the commands for an operator while the server is stopped.
struct ClusterMember {
    let configuration: Configuration

    init(_ configuration: Configuration) { self.configuration = configuration }

    /// Makes the store the first of a new cluster. If there is no store yet, it is made.
    func begin() throws {
        guard let address = try configuration.journalAddress() else {
            throw ConfigurationError(description: "--cluster-init: name the journal's database too: --journal")
        }
        let log = Log(level: .notice)
        defer { log.close() }
        let instance = try alone(log, mustExist: false)
        defer { instance.close() }
        _ = try waitFor {
            try await instance.project.start(keepingFirstAdminKey: DataDirectory(configuration).adminKeyFile(log))
        }
        let masterKey = try DataDirectory(configuration).masterKey(mustExist: true)
        do {
            try ClusterMembership.begin(
                with: instance.project.store, at: address, masterKey: masterKey, random: .system, limits: Limits())
        } catch let error as JournalEngineError {
            throw ConfigurationError(description: "journal: \(error)")
        }
        print(
            "\(configuration.dataDirectory) is the first store of a new cluster, in the schema "
                + "\(address.schema). Start posternd with the same --journal.")
    }

    /// Takes the store out of its cluster.
    func leave() throws {
        let log = Log(level: .warning)
        defer { log.close() }
        let instance = try alone(log, mustExist: true)
        defer { instance.close() }
        guard let place = try instance.project.store.journalPlace() else {
            return print("\(configuration.dataDirectory) belongs to no cluster: there is nothing to leave.")
        }
        try ClusterMembership.leave(instance.project.store)
        unregister(from: place)
        print(
            "\(configuration.dataDirectory) has left its cluster and keeps what it has, up to entry \(place.position). "
                + "What it writes from now on, the cluster does not learn.")
    }

    /// If the engine is not named or does not answer, the other nodes wait a day for this node.
    private func unregister(from place: JournalPlace) {
        guard let id = ClusterNode.id(of: configuration.dataDirectory) else { return }
        do {
            guard let address = try configuration.journalAddress() else {
                let row = Hex.encode(id)
                return print(
                    "Without --journal, its entry in the list of nodes stays there for a day, unless you delete it: "
                        + "DELETE FROM \(configuration.journalSchema).postern_node WHERE id = '\\x\(row)'")
            }
            try ClusterMembership.unregister(
                id, of: place.clusterID, at: address,
                masterKey: DataDirectory(configuration).masterKey(mustExist: true), limits: Limits())
        } catch {
            print("Its entry in the list of nodes stays there for a day: \(error).")
        }
    }

    /// The server over its store without the journal. Nothing is served.
    private func alone(_ log: Log, mustExist: Bool) throws -> Instance {
        var configuration = configuration
        configuration.journal = ""
        return try Daemon.makeInstance(configuration, log: log, mustExist: mustExist) { $0.leavesJournal = true }
    }
}
