import Base
import Crypto
import Identity
import Store

/// How the commands read a store that no server has open: that of the directory, or one in a folder beside it.
extension DataDirectory {
    func storeConfiguration(of folder: String, _ lock: DirectoryLock? = nil) -> StoreConfiguration {
        var store = StoreConfiguration(directory: folder, tables: Tables.all)
        store.mapByteCount = Int(configuration.mapBytes)
        store.lock = lock
        return store
    }

    /// Nil if the folder holds no store, or one of an older version.
    func inspect<Result>(
        _ folder: String, _ lock: DirectoryLock? = nil, with masterKey: MasterKey,
        _ body: (borrowing ReadTransaction) throws -> Result
    ) throws -> Result? {
        try Store.inspect(
            storeConfiguration(of: folder, lock), authenticator: RecordMACs(masterKey: masterKey),
            eventHash: RecordMACs.eventHash, body)
    }

    /// Reads the whole store.
    func report(
        on store: StoreConfiguration, with masterKey: MasterKey, isBackup: Bool = false
    ) throws(StoreError) -> StoreReport {
        try StoreReport(
            store, authenticator: RecordMACs(masterKey: masterKey), eventHash: RecordMACs.eventHash,
            isBackup: isBackup, records: RecordAudit.run)
    }
}

extension UndoneEvents {
    var total: Int { counts.reduce(0) { $0 + $1.count } }

    func printCounts() { for (kind, count) in counts { print("  \(kind): \(count)") } }
}

extension RevivedKeys {
    func printWarning() {
        guard !kinds.isEmpty else { return }
        print("These keys are good again after the restore. Revoke them again if they were revoked:")
        for (kind, ids) in kinds {
            for id in ids { print("  \(kind) \(id)") }
        }
    }
}
