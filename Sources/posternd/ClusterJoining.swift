import Base
import Cluster
import Crypto
import Glibc
import Identity
import Service
import Store

/// Joins a cluster: at the start of a server with an empty data directory, and for a server that has to join again.
struct ClusterJoining {
    private let configuration: Configuration

    init(_ configuration: Configuration) { self.configuration = configuration }

    /// If the directory holds no store, the node takes the cluster's newest snapshot. The directory is locked.
    func joinIfEmpty(_ address: JournalAddress, _ log: Log) throws {
        guard Files.mode(of: "\(directory.path)/data.mdb") == nil else { return Joining.clear(directory.path) }
        log.notice("joining a cluster by its newest snapshot", ["schema": .text(address.schema)])
        let joined = try explained { try joinOnceTheEngineAnswers(address, log) }
        log.notice(
            "joined the cluster",
            [
                "position": .integer(Int64(clamping: joined.place.position)),
                "bytes": .integer(Int64(clamping: joined.byteCount)),
            ])
    }

    /// While there is no engine, a node waits for it, like a node that has joined.
    private func joinOnceTheEngineAnswers(_ address: JournalAddress, _ log: Log) throws -> Joining.Joined {
        let joining = try joining(address)
        var isSaid = false
        while true {
            do {
                return try joining.run()
            } catch JournalEngineError.connectionLost(let reason) {
                if !isSaid {
                    log.warning(
                        "waiting for the engine of the journal, which does not answer", ["error": .text(reason)])
                }
                isSaid = true
                sleep(1)
            }
        }
    }

    /// `--cluster-rejoin`: the cluster's newest snapshot takes the place of the store, which is kept.
    func rejoin() throws {
        guard let address = try configuration.journalAddress() else {
            throw ConfigurationError(description: "--cluster-rejoin: name the journal's database too: --journal")
        }
        let lock = try directory.lockAsItIs(for: .changing)
        defer { lock.release() }
        let joined = try explained {
            try joining(address).run(replacing: true) { folder in try describe(lock, replacedBy: folder) }
        }
        if let kept = joined.kept {
            print("The store of before is in \(kept); delete it when it is no longer needed.")
        }
        print("Joined the cluster again, at entry \(joined.place.position). Start posternd with the same --journal.")
    }

    /// The server's work for its cluster while it serves; nil for a server that is the only one.
    func keep(_ instance: Instance, at address: String, _ log: Log) throws -> ClusterKeeper? {
        guard let journal = try self.configuration.journalAddress() else { return nil }
        var configuration = ClusterKeeper.Configuration(
            try node(at: address), in: directory.path, at: journal,
            masterKey: try directory.masterKey(mustExist: true))
        configuration.onHoldingBack = { [health = instance.health] in health.note(holdsSnapshotsBack: $0) }
        let keeper = try ClusterKeeper(instance.project.store, configuration, log: log)
        instance.project.snapshots.make { try keeper.makeSnapshot() }
        return keeper
    }

    private var directory: DataDirectory { DataDirectory(configuration) }

    private func node(at address: String) throws -> ClusterNode {
        try ClusterNode(of: directory.path, address: address, version: version, random: .system)
    }

    private func joining(_ address: JournalAddress) throws -> Joining {
        let masterKey = try directory.masterKey(mustExist: true)
        return Joining(
            directory.storeConfiguration(of: directory.path), as: try node(at: configuration.listenAddress),
            at: address, masterKey: masterKey, authenticator: RecordMACs(masterKey: masterKey),
            eventHash: RecordMACs.eventHash, limits: Limits())
    }

    /// Says what only the earlier store holds, as far as the logs of events tell. Refuses to replace a store of another
    /// cluster.
    private func describe(_ lock: DirectoryLock, replacedBy folder: String) throws {
        let masterKey = try directory.masterKey(mustExist: true)
        let undone: UndoneEvents?
        do {
            undone = try directory.inspect(folder, with: masterKey) { new in
                try directory.inspect(directory.path, lock.lent(), with: masterKey) { old in
                    guard try old.journalPlace()?.clusterID == new.journalPlace()?.clusterID else {
                        throw StoreRefusal(
                            description: "\(directory.path): the store is not one of this cluster's: it stays as it is")
                    }
                    return try UndoneEvents(in: old, missingFrom: new)
                }
            }.flatMap { $0 }
        } catch let error as StoreRefusal {
            throw error
        } catch {
            return print("What only the store of before holds is not known, because it cannot be read: \(error).")
        }
        guard let undone else { return print("There was no store here.") }
        print("\(undone.total) events are in the log of the store of before, and not in the newest snapshot.")
        undone.printCounts()
    }

    private func explained<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try directory.explaining(body)
        } catch JournalEngineError.connectionLost(let reason) {
            throw ConfigurationError(description: "journal: \(reason)")
        } catch let error as JournalEngineError {
            // As for a node that has joined: another try does not help.
            throw StoreRefusal(description: "journal: \(error)")
        } catch let error as SnapshotProblem {
            switch error {
            case .none, .replaced: throw ConfigurationError(description: "journal: \(error)")
            default: throw StoreRefusal(description: "journal: \(error)")
            }
        }
    }
}
