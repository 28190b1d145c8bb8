public import Base
public import Messages
import Store

extension Project {
    /// Makes the records that an empty store lacks, and publishes those that a filled store has. Returns the first
    /// admin key if it made one: the key cannot be read again. `keeper` keeps the key.
    /// `backup`: the backup from which an operator has just restored the store.
    public func start(
        keepingFirstAdminKey keeper: (any SecretKeeper)? = nil, restoredFrom backup: BackupHeader? = nil
    ) async throws -> Secret? {
        try await acceptRollback(restoredFrom: backup)
        if store.isUpgradePutOff {
            resources.log.warning(
                "the store is full and could not be upgraded; delete something, then start again", [:])
        }
        // This is written in a full store, too: the operator started the server for it.
        try await WritePurpose.$current.withValue(.removal) { try await acceptClock() }
        try await tenants.start()
        try guesses.start()
        try await signingKeys.start(algorithm: configuration.signingAlgorithm)
        try await customTokens.builtIn.start()
        return try await callers.createFirstAdmin(keeper)
    }

    /// Reports a store that opened although it contradicts its witness, in the log and among the events. For a store
    /// that was restored from a backup, only an event is written, which names the backup.
    private func acceptRollback(restoredFrom backup: BackupHeader?) async throws {
        if let backup { return try await backups.noteRestored(backup) }
        guard let rollback = store.rollback else { return }
        if store.isInCluster {
            // By now the store has read again from the journal whatever the machine lost.
            return try await store.acceptRollback { _ in }
        }
        let now = clock.now()
        try await store.acceptRollback { transaction in
            try transaction.appendEvent(
                .storeRolledBack, tenantID: .empty, origin: .server, detail: Text("\(rollback)"), now: now)
        }
        resources.log.warning(
            "the store was rolled back: what was acknowledged last is gone, revocations too",
            ["reason": .text("\(rollback)")])
    }
}
