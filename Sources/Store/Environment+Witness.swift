internal import CLMDB
import Synchronization

extension Environment {
    /// The position of the store: its newest transaction and event.
    func position() throws(StoreError) -> Witness.Position {
        var info = MDB_envinfo()
        try StoreError.check(mdb_env_info(raw, &info), "mdb_env_info")
        return Witness.Position(
            transaction: UInt64(clamping: info.me_last_txnid), event: committedEvent.load(ordering: .acquiring))
    }

    /// Notes the newest committed event. Nil means that there is no newer one.
    func noteEvent(_ sequence: UInt64?) {
        if let sequence { committedEvent.store(sequence, ordering: .releasing) }
    }

    func setWitness(_ new: Witness) {
        let old = witness.withLock { witness in
            defer { witness = new }
            return witness
        }
        old?.close()
    }

    /// A transaction was committed, with events up to `event` if it had any. The writer's thread only.
    func noteCommit(event: UInt64?) {
        noteEvent(event)
        if configuration.durability == .synced { noteSync() }
    }

    /// Notes that everything committed is on the disk. The writer's thread only.
    func noteSync() {
        if configuration.journal != nil { journalStatus.withLock { $0.noteSynced() } }
        guard let position = try? position() else { return }
        witness.withLock { $0?.advance(to: position) }
    }
}
