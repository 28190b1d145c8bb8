import Base
internal import CLMDB
import Journal
import Synchronization

/// Applies the entries of other nodes, and entries of this node whose outcome it did not learn.
extension JournaledWrites {
    /// A node that comes back may lack a million entries. So the queue, the disk and the status have their turn after
    /// each part of them.
    func apply(upTo mark: JournalMark) {
        guard var reached = node.mark else { return }
        let began = Instant.now
        var left = heads.drop { $0.mark.position <= reached.position }.prefix { $0.mark.position <= mark.position }
        do throws(StoreError) {
            while !left.isEmpty {
                let entries: [JournaledEntry]
                do throws(JournalEngineError) {
                    entries = try engine.entries(for: left)
                } catch {
                    lost(error)
                    // If that was the end of the store, the status must not say that it serves.
                    if writer.fatal == nil { handle(.stored(reached)) }
                    return
                }
                guard let last = try applyWhenThereIsRoom(entries) else { return }
                isBack()
                reached = last
                left = left.dropFirst(entries.count)
                if !left.isEmpty, !goesOn(after: reached, since: began) { return }
            }
            handle(.stored(reached))
        } catch {
            end(error)
        }
    }

    /// Does what waits for the writer's thread between two parts of the entries. Returns false if the store was closed.
    private func goesOn(after reached: JournalMark, since began: Instant) -> Bool {
        environment.journalStatus.withLock { $0.reached(reached) }
        // The journal keeps what this node has not synced, and a node that makes no progress is dropped from its list.
        if writer.isSyncDue, Instant.now >= writer.nextSync { writer.sync() }
        return goesOn(since: began)
    }

    /// Looks at the queue if the node has been reading for too long since `began`, and refuses what waits. Returns
    /// false if the store was closed.
    func goesOn(since began: Instant) -> Bool {
        guard Instant.now >= began.advanced(by: limits.journal.patience) else { return true }
        isClosing = writer.queue.isClosed
        // The first writes of a node that starts wait until it is at the journal's end: nothing else could make them.
        let hasServed = environment.journalStatus.withLock { $0.endSeenAt != nil }
        if hasServed, !isClosing { refuseUndecided(because: .journal(.behind)) }
        return !isClosing
    }

    /// Returns the mark that the store has reached; nil if the store was closed while its disk took no writes.
    private func applyWhenThereIsRoom(_ entries: [JournaledEntry]) throws(StoreError) -> JournalMark? {
        while true {
            do throws(StoreError) {
                return try applyAtOnce(entries)
            } catch {
                guard error.mayPass else { throw error }
                // Ends a backup whose snapshot may keep the pages that are missing (`RoomWatch`).
                if error == .full { writer.counters.refusals.add() }
                refuseWaiting(because: error)
                if writer.queue.isClosed {
                    isClosing = true
                    return nil
                }
                alarm.sleep(until: Instant.now.advanced(by: limits.fullDiskRetryInterval))
            }
        }
    }

    private func applyAtOnce(_ entries: [JournaledEntry]) throws(StoreError) -> JournalMark? {
        let raw = try writer.begin(isRecording: false)
        do throws(StoreError) {
            let transaction = WriteTransaction(raw: raw, environment: environment, batch: writer.batch)
            for entry in entries where !entry.bytes.isEmpty { try transaction.apply(entry) }
            if let last = entries.last {
                try transaction.setJournalPlace(JournalPlace(clusterID: clusterID, mark: last.mark))
            }
            try transaction.finishBatch()
            _ = try writer.space.admit(raw, purpose: .removal, changeCount: writer.batch.changeCount)
        } catch {
            mdb_txn_abort(raw)
            throw error
        }
        try writer.commit(raw, for: .removal)
        writer.counters.journal.applied.add(UInt64(entries.count))
        return entries.last?.mark
    }
}
