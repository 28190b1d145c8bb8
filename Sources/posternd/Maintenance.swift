import Base
import Cluster
import Glibc
import Identity
import Messages
import Service
import Store

/// The commands for an operator while the server is stopped.
enum Maintenance {
    /// Makes another project-admin key and writes it to the place of the first key.
    static func recoverAdmin(_ configuration: Configuration) throws {
        let log = Log(level: .warning)
        defer { log.close() }
        let instance = try Daemon.makeInstance(configuration, log: log, mustExist: true)
        defer { instance.close() }
        let path = DataDirectory(configuration).adminKeyPath
        // The new key has a name of its own until the store has it: until then, the earlier key stays where it is.
        try waitFor {
            // A full store takes this, too: its last pages let the operator in.
            try await WritePurpose.$current.withValue(.removal) {
                _ = try await instance.project.start()
                _ = try await instance.project.callers.create(
                    WantedKey(
                        role: .projectAdmin, scope: Scope(tenants: .all(true)), displayName: "recovered admin key"),
                    validateOnly: false, origin: .server, event: .adminRecovered,
                    keep: { try PrivateFile.replace("\(path).recovered", with: AdminKeyFile.line($0)) })
            }
        }
        if Files.mode(of: path) != nil { _ = rename(path, "\(path).old") }
        guard rename("\(path).recovered", path) == 0 else {
            throw FileError(path: "\(path).recovered", call: "rename", code: errno)
        }
        try PrivateFile.syncDirectory(of: path)
        print("A new project-admin API key is in \(path); revoke the old ones that may be known to others.")
    }

    /// Begins a new witness for a store that contradicts its present witness.
    static func acceptRollback(_ configuration: Configuration) throws {
        let log = Log(level: .error)
        defer { log.close() }
        let instance = try Daemon.makeInstance(configuration, log: log, mustExist: true) { $0.acceptsRollback = true }
        defer { instance.close() }
        guard let rollback = instance.project.store.rollback else {
            return print("The store is what its witness says it is: there is nothing to accept.")
        }
        try waitFor {
            // On a full store, too: the server has to start for anybody to make room.
            try await WritePurpose.$current.withValue(.removal) { _ = try await instance.project.start() }
        }
        print("Accepted, and written to the event log: \(rollback).")
        print("Tokens and keys that were revoked since may be good again: docs/store.md, \"After a rollback\".")
    }

    /// Reads the whole store and prints its faults.
    static func verifyStore(_ configuration: Configuration) throws {
        let directory = DataDirectory(configuration)
        let lock = try directory.lock(for: .reading)
        let masterKey = try directory.masterKey(mustExist: true)
        let report = try directory.explaining {
            try directory.report(on: directory.storeConfiguration(lock), with: masterKey)
        }
        for line in report.lines { print(line) }
        guard report.isSound else {
            throw StoreRefusal(description: "\(directory.path): the store is damaged: restore a backup of data.mdb")
        }
        // A note that cannot be removed only keeps a node of a cluster from making snapshots for a while.
        try? SnapshotTrials(in: directory.path).forget()
    }
}
