import Base
import Crypto
import Glibc
import Identity
import Messages
import Service
import Store

/// `--check-backup` and, with the server stopped, `--restore-backup`.
///
/// A restored store is made ready in the folder `restore.new` beside the present store: unpacked, verified as
/// `--verify-store` does, opened once and closed. Only then it takes the place of the present store, which is kept
/// under another name. A crash before that changes nothing; a crash in between leaves a directory on which no server
/// starts.
struct Restore {
    private let configuration: Configuration
    private let directory: DataDirectory
    private let masterKey: MasterKey
    private let backup: BackupFile
    private let folder: String
    /// The lock on `folder`; nil if the data directory's lock keeps others away from it.
    private let folderLock: DirectoryLock?
    private let backupPath: String

    /// The backup is unpacked into `folder`.
    private init(
        _ configuration: Configuration, from path: String, into folder: String, folderLock: DirectoryLock? = nil
    ) throws {
        self.configuration = configuration
        self.directory = DataDirectory(configuration)
        self.backupPath = path
        self.folder = folder
        self.folderLock = folderLock
        self.masterKey = try directory.masterKey(mustExist: true)
        do throws(BackupError) {
            self.backup = try BackupFile(path, masterKeyID: masterKey.id, key: masterKey.backupKey)
        } catch {
            throw Self.explained(error, path, folder)
        }
    }

    /// Only a backup that is bad itself is refused as damaged. For all else, somebody has to mend what the error names.
    private static func explained(_ error: BackupError, _ path: String, _ folder: String) -> any Error {
        switch error {
        case .notABackup, .cut, .altered: StoreRefusal(description: "\(path): \(error)")
        case .newerFormat, .otherMasterKey, .file: ConfigurationError(description: "\(path): \(error)")
        case .unpacking:
            ConfigurationError(description: "\(folder): \(error); the whole store of the backup needs room there")
        }
    }

    /// Says whether the backup is sound and, if the server is stopped, also what restoring it would undo.
    /// `isBeforeRestore`: a restore is about to follow, so a running server is reported before anything is read.
    static func check(_ configuration: Configuration, _ path: String, isBeforeRestore: Bool) throws {
        let directory = DataDirectory(configuration)
        if isBeforeRestore { try lockIfStopped(directory, mustBeStopped: true)?.release() }
        let folder = try CheckFolder(beside: path)
        defer { folder.remove() }
        let restore = try Restore(configuration, from: path, into: folder.path, folderLock: folder.lock)
        try restore.prepare()
        // Not before: reading a backup takes long, and a server that is started meanwhile must find no lock.
        let lock = try lockIfStopped(directory, mustBeStopped: isBeforeRestore)
        defer { lock?.release() }
        try restore.describe(over: lock)
    }

    /// Nil if there is no directory, and if a server runs on it, unless it `mustBeStopped`.
    private static func lockIfStopped(_ directory: DataDirectory, mustBeStopped: Bool) throws -> DirectoryLock? {
        do {
            return try DirectoryLock(directory.path, for: .reading)
        } catch {
            if mustBeStopped, error != .missing { throw directory.explained(error) }
            return nil
        }
    }

    static func run(_ configuration: Configuration, _ path: String) throws {
        let directory = DataDirectory(configuration)
        let restore = try Restore(configuration, from: path, into: "\(directory.path)/restore.new")
        let lock = try directory.lockAsItIs(for: .making)
        defer { lock.release() }
        // The folder may be left from a restore that was killed.
        restore.removeFolder()
        guard mkdir(restore.folder, 0o700) == 0 else {
            throw FileError(path: restore.folder, call: "mkdir", code: errno)
        }
        do {
            try restore.prepare()
            try restore.describe(over: lock)
            let wasInCluster = try restore.open()
            let kept = try restore.takePlace()
            if let kept { print("The store of before is in \(kept); delete it when it is no longer needed.") }
            print("Restored. Every refresh token of before is void, and every code that was sent: users sign in again.")
            if wasInCluster { print("The store belongs to no cluster now: docs/cluster.md, \"Restoring a backup\".") }
        } catch {
            restore.removeFolder()
            throw error
        }
    }

    /// Unpacks the backup and reads all of it.
    private func prepare() throws {
        do {
            try backup.unpack(to: "\(folder)/data.mdb")
            let report = try refusingDamage {
                try directory.report(
                    on: directory.storeConfiguration(of: folder, folderLock?.lent()), with: masterKey, isBackup: true)
            }
            guard report.isSound else {
                for line in report.lines { print(line) }
                throw StoreRefusal(description: "\(backupPath): the store in the backup is damaged")
            }
        } catch let error as BackupError {
            throw Self.explained(error, backupPath, folder)
        }
    }

    /// Runs `body` on the store of the backup. Names the backup if the store has an error, and not the data directory.
    private func refusingDamage<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError {
            guard error.isDamage else { throw ConfigurationError(description: "\(backupPath): \(error)") }
            throw StoreRefusal(description: "\(backupPath): the store in the backup is damaged: \(error)")
        }
    }

    /// Describes the backup, and what came after it in the present store.
    private func describe(over lock: DirectoryLock?) throws {
        let event =
            try directory.inspect(folder, folderLock?.lent(), with: masterKey) { try $0.newestEventNumber }
            ?? backup.header.newestEvent
        let seconds = time_t(backup.header.createdAtMicros / 1_000_000)
        let made = Files.utc(seconds, "made %Y-%m-%d %H:%M:%S UTC")
        print(
            "The backup is sound: project \(backup.header.projectID), \(made), "
                + "\(backup.dataByteCount) bytes, up to event \(event).")
        guard let lock else { return print("What restoring it undoes is told while no server runs here.") }
        guard Files.mode(of: "\(directory.path)/data.mdb") != nil else { return print("There is no store here yet.") }
        let effects: Effects?
        do {
            effects = try self.effects(behind: event, lock)
        } catch {
            return print("What it undoes is not known, because the store that is here cannot be read: \(error).")
        }
        guard let effects else {
            return print("What it undoes is not told, because the store that is here is of an older version.")
        }
        print("It undoes \(effects.undone.total) events: changes, and sessions begun and ended, that were made since.")
        effects.undone.printCounts()
        effects.revived?.printWarning()
    }

    /// What a restore would change in the store that is here.
    private struct Effects {
        let undone: UndoneEvents
        /// Nil for a backup of an older version, whose rows are not compared.
        let revived: RevivedKeys?
    }

    /// Nil if the store that is here is of an older version.
    ///
    /// The histories of the two stores may differ, so their events are compared. If the backup is of an older version,
    /// its store is not read, and the events that are newer than its newest `event` count.
    private func effects(behind event: UInt64, _ lock: DirectoryLock) throws -> Effects? {
        let now = Clock.system.now()
        let compared: Effects?? = try directory.inspect(folder, folderLock?.lent(), with: masterKey) {
            backup -> Effects? in
            try directory.inspect(directory.path, lock.lent(), with: masterKey) { present -> Effects in
                Effects(
                    undone: try UndoneEvents(in: present, missingFrom: backup),
                    revived: try RevivedKeys(of: backup, refusedIn: present, now: now))
            }
        }
        if let compared { return compared }
        return try directory.inspect(directory.path, lock.lent(), with: masterKey) { present -> Effects in
            Effects(undone: try UndoneEvents(in: present, behind: event), revived: nil)
        }
    }

    /// Opens the restored store once: it writes the restore to its log of events, and draws an epoch. Returns whether
    /// the backup is that of a cluster's node.
    private func open() throws -> Bool {
        var configuration = configuration
        configuration.dataDirectory = folder
        // With the journal, the store would make all changes again that came after the backup.
        configuration.journal = ""
        configuration.masterKeyFile = self.configuration.effectiveMasterKeyFile
        let log = Log(level: .error)
        defer { log.close() }
        let instance = try Daemon.makeInstance(configuration, log: log, mustExist: true) {
            $0.acceptsRollback = true
            $0.leavesJournal = true
        }
        defer { instance.close() }
        let header = backup.header
        return try refusingDamage {
            let wasInCluster = try instance.project.store.journalPlace() != nil
            try waitFor {
                // A full store is restored, too: these writes may take its last pages.
                try await WritePurpose.$current.withValue(.removal) {
                    _ = try await instance.project.start(restoredFrom: header)
                    // A cluster's journal still holds what came after the backup: the restored store is none of its
                    // nodes.
                    try await instance.project.store.write { try $0.setJournalPlace(nil) }
                }
            }
            return wasInCluster
        }
    }

    /// Puts the restored store in the place of the present one. Returns where that one is kept; nil if there was none.
    private func takePlace() throws -> String? {
        let path = directory.path
        var kept: String?
        if Files.mode(of: "\(path)/data.mdb") != nil {
            kept = try FreeName.keep(
                "\(path)/data.mdb", as: "\(path)/data.mdb.before-restore-\(Glibc.time(nil))")
        }
        do {
            try Self.rename("\(folder)/witness", "\(path)/witness")
        } catch {
            // The store of before still has its own witness.
            if let kept { try Self.rename(kept, "\(path)/data.mdb") }
            throw error
        }
        do {
            try Self.rename("\(folder)/data.mdb", "\(path)/data.mdb")
        } catch {
            let former = kept.map { "; the store of before is in \($0)" } ?? ""
            throw StoreRefusal(description: "\(error): run the restore again\(former)")
        }
        unlink("\(path)/lock.mdb")
        removeFolder()
        try PrivateFile.syncDirectory(path)
        return kept
    }

    private func removeFolder() { UnpackedStore.remove(folder) }

    private static func rename(_ old: String, _ new: String) throws {
        guard Glibc.rename(old, new) == 0 else { throw FileError(path: old, call: "rename", code: errno) }
    }
}
