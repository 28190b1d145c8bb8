import Base
import Cluster
import Crypto
import Glibc
import JSON
import Store

/// The data directory as posternd opens it: who may open it, with which key, and the errors for an operator.
struct DataDirectory {
    let configuration: Configuration

    init(_ configuration: Configuration) { self.configuration = configuration }

    var path: String { configuration.dataDirectory }
    var adminKeyPath: String { "\(path)/admin-key" }
    private var dataFilePath: String { "\(path)/data.mdb" }

    /// Locks the directory for this process. Refuses a directory that held a store and has lost it: an empty store in
    /// its place would answer every user with "no such account".
    func lock(for use: DirectoryUse) throws -> DirectoryLock {
        let lock = try lockAsItIs(for: use)
        let mustExist = use != .making
        guard Files.mode(of: dataFilePath) == nil else { return lock }
        if !mustExist, Joining.isInterrupted(in: path) {
            guard configuration.journal.isEmpty else { return lock }
            throw StoreRefusal(
                description: "\(path): was joining a cluster when it was interrupted: name its journal (--journal)")
        }
        if Files.mode(of: "\(path)/restore.new") != nil {
            throw StoreRefusal(
                description: "\(dataFilePath) is missing, but restore.new is there: a restore was interrupted. Run it "
                    + "again")
        }
        for name in ["witness", "admin-key", "admin-key.old"] where Files.mode(of: "\(path)/\(name)") != nil {
            throw StoreRefusal(
                description: "\(dataFilePath) is missing, but \(name) is there: this directory held a store. Put "
                    + "data.mdb back from a backup. To begin an empty store, move the directory away or name another")
        }
        if mustExist { throw ConfigurationError(description: "\(path): there is no store in it") }
        return lock
    }

    /// Locks the directory, with a store or without.
    func lockAsItIs(for use: DirectoryUse) throws -> DirectoryLock {
        try explaining { try DirectoryLock(path, for: use) }
    }

    /// The master key of the store in the directory. A new key is made only if there is no store yet.
    func masterKey(mustExist: Bool) throws -> MasterKey {
        try MasterKeyFile.load(
            configuration.effectiveMasterKeyFile, mayCreate: !mustExist && Files.mode(of: dataFilePath) == nil)
    }

    /// The store as the server opens it. Damage that is met by a fault ends the process, with a line.
    func storeConfiguration(_ lock: DirectoryLock) -> StoreConfiguration {
        var store = storeConfiguration(of: path, lock)
        store.durability = configuration.durability == "relaxed" ? .relaxed : .synced
        store.damage = DamageReport(
            lineOfStore: faultLine("the data file is damaged or was cut, the process ends", advice: Self.damageAdvice),
            lineOfOthers: faultLine(
                "the process ends by a fault: a defect, or a damaged data file",
                advice: "posternd --verify-store tells whether the file is damaged; if not, please report the defect"))
        return store
    }

    func adminKeyFile(_ log: Log) -> AdminKeyFile { AdminKeyFile(path: adminKeyPath, log: log) }

    /// The line that the process writes when a fault ends it. The log cannot be used any more then.
    private func faultLine(_ message: Text, advice: String) -> [UInt8] {
        let members = [
            JSONValue.Member("level", .string("error")),
            JSONValue.Member("message", .string(message)),
            JSONValue.Member("file", .string(Text(dataFilePath))),
            JSONValue.Member("advice", .string(Text(advice))),
        ]
        return JSONValue.object(members).serialized().dropFirst() + [UInt8(ascii: "\n")]
    }

    static let damageAdvice =
        "posternd --verify-store tells what is damaged; check the disk, then restore a backup of data.mdb"

    /// The error with advice for an operator, for a store that does not open.
    func explained(_ error: StoreError) -> any Error {
        switch error {
        case .inUse:
            ConfigurationError(description: "\(path): another posternd uses it; stop that one, or choose another")
        case .missing: ConfigurationError(description: "\(path): there is no store in it")
        case .corrupt(table: "meta"):
            ConfigurationError(
                description: "\(configuration.effectiveMasterKeyFile): is not the master key of this store")
        case .truncated, .damaged, .corrupt:
            StoreRefusal(description: "\(dataFilePath): \(error): \(Self.damageAdvice)")
        case .rolledBack(.metaPagesApart):
            StoreRefusal(
                description: "\(dataFilePath): \(error). If the older page was taken for the newest, the last "
                    + "transaction is lost. Keep a copy of the file; then restore a backup, or go on with what there "
                    + "is: posternd --accept-rollback")
        case .rolledBack(let rollback):
            StoreRefusal(
                description: "\(path): \(rollback). What was acknowledged since is lost, revocations too. Restore a "
                    + "newer backup, or go on with what there is: posternd --accept-rollback")
        case .newerSchema, .unknownTable:
            StoreRefusal(
                description: "\(path): \(error): upgrade this server, or go back to the data from before the upgrade: "
                    + "docs/deploying.md, \"Going back\"")
        case .system(code: EACCES, _): ConfigurationError(description: closedFile ?? "\(path): \(error)")
        // The trouble may pass: the caller tries again, or the supervisor does.
        case .journal(let trouble) where !trouble.endsTheStore: error
        case .journal(let trouble): explained(trouble)
        default: ConfigurationError(description: "\(path): \(error)")
        }
    }

    /// Runs `body`. An error of the store that it throws gets advice for an operator, and so the right exit status.
    func explaining<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError {
            throw explained(error)
        }
    }
}

extension DataDirectory {
    private func explained(_ trouble: JournalTrouble) -> any Error {
        let advice: String? =
            switch trouble {
            case .notJoined:
                "make it the first of a cluster with --cluster-init, or begin with an empty directory to join one"
            case .journalNotNamed: "name it with --journal, or leave the cluster with --cluster-leave"
            case .newer: "upgrade this server"
            case .forked, .trimmed:
                "posternd --cluster-rejoin takes the cluster's newest snapshot and keeps this store under another name "
                    + "(docs/cluster.md, \"Rejoining\")"
            case .damaged: "docs/cluster.md tells what to do"
            default: nil
            }
        return StoreRefusal(description: "\(path): \(trouble)" + (advice.map { ": \($0)" } ?? ""))
    }
}

extension StoreError {
    /// Whether a supervisor should not start the server again before somebody has repaired the cause.
    var isBeyondRestarts: Bool { if case .journal(let trouble) = self { trouble.endsTheStore } else { false } }
}
