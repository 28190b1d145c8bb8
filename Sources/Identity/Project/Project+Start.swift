public import Base
public import Messages
import Store

extension Project {
    /// Makes what an empty store lacks and publishes what a full one has. Returns the first admin key if it made one:
    /// it cannot be read again. `keeper` keeps it.
    /// `backup`: what an operator has just restored the store from.
    public func start(
        keepingFirstAdminKey keeper: (any SecretKeeper)? = nil, restoredFrom backup: BackupHeader? = nil
    ) async throws -> Secret? {
        try await acceptRollback(restoredFrom: backup)
        if store.isUpgradePutOff {
            resources.log.warning(
                "the store is full and could not be upgraded; delete something, then start again", [:])
        }
        // Also in a full store: it is what the operator started the server for.
        try await WritePurpose.$current.withValue(.removal) { try await acceptClock() }
        try await tenants.start()
        try guesses.start()
        try await signingKeys.start(algorithm: configuration.signingAlgorithm)
        try await customTokens.builtIn.start()
        return try await callers.createFirstAdmin(keeper)
    }

    /// A store that opened although it contradicts its witness: says so, in the log and among the events. A store that
    /// was restored from a backup is no such trouble: its event names the backup.
    private func acceptRollback(restoredFrom backup: BackupHeader?) async throws {
        if let backup { return try await backups.noteRestored(backup) }
        guard let rollback = store.rollback else { return }
        if store.isInCluster {
            // Whatever the machine lost, the store has read from the journal again by now.
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
