import Base
internal import CLMDB
import Journal
import Synchronization

/// The waiting writes, and their outcome.
extension JournaledWrites {
    /// Takes the requests that wait in the queue. Returns false if the store is closed and nothing waits.
    func takeRequests() -> Bool {
        guard decided.isEmpty, waiting.isEmpty else { return true }
        switch writer.queue.takeNow(countMax: limits.writeBatchMax) {
        case .batch(let requests):
            waiting = requests
            handle(.requestsCame)
        case .closed: return false
        case .timedOut, nil: break
        }
        return true
    }

    /// Runs the bodies of the waiting requests, as many as one entry can hold.
    func decide() {
        dropOverdue()
        var part = waiting.prefix(partMax)
        var rerunCount = 0
        for request in waiting {
            request.isExcluded = false
            request.error = nil
        }
        while !part.isEmpty {
            let attempt = writer.attempt(part)
            if case .ready(let raw, let done) = attempt {
                part = done
                if writer.batch.hasEntry, refuseForClock(raw, part) { continue }
                if let smaller = tooLarge(raw, part) {
                    part = smaller
                    continue
                }
                if part.count == partMax { partMax = min(partMax, limits.writeBatchMax) * 2 }
                (open, decided) = (raw, part)
                waiting.removeFirst(part.count)
                entry = writer.batch.entry
                return handle(.ran(entry == nil ? .refusals : .changes))
            }
            switch writer.remedy(for: attempt, part, &rerunCount) {
            case .again: continue
            // The requests after this part stay in `waiting`.
            case .shorter(let first): part = first
            case .over(let done):
                waiting.removeFirst(done.count)
                part = writer.fatal == nil ? waiting.prefix(partMax) : []
            }
        }
        // Every request failed for a reason of this node's own, and its caller was told.
        handle(.ran(.refusals))
    }

    /// If this node's clock is too far from the engine's, leaves out the writes that change something, because their
    /// time stamps would bind all nodes.
    private func refuseForClock(_ raw: OpaquePointer, _ part: ArraySlice<WriteRequest>) -> Bool {
        let clock = environment.journalStatus.withLock { $0.clock }
        guard clock.isWrong else { return false }
        mdb_txn_abort(raw)
        for request in part where request.isChanging && !request.isExcluded {
            request.isExcluded = true
            request.error = StoreError.journal(.clockWrong(clock.difference))
        }
        return true
    }

    /// Leaves out the writes whose callers already have their answer: the deadline passed while the write waited for
    /// the engine or lost a race. A write that is dropped here has certainly not happened.
    private func dropOverdue() {
        let now = Instant.now
        let overdue = waiting.filter { $0.isOverdue(at: now) }
        guard !overdue.isEmpty else { return }
        waiting.removeAll { $0.isOverdue(at: now) }
        writer.fail(overdue[...], .overdue)
    }

    /// The part to try instead, if the changes of `part` are too large for one entry; nil if they are not.
    private func tooLarge(_ raw: OpaquePointer, _ part: ArraySlice<WriteRequest>) -> ArraySlice<WriteRequest>? {
        let byteCount = writer.batch.changesByteCount
        let byteCountMax = part.count == 1 ? limits.journal.entryByteCountMax : limits.journal.batchByteCountMax
        guard byteCount > byteCountMax else { return nil }
        mdb_txn_abort(raw)
        if part.count > 1 {
            let half = writer.firstHalf(of: part)
            partMax = half.count
            return half
        }
        waiting.removeFirst()
        writer.fail(part, .journal(.entryTooLarge))
        return waiting.prefix(partMax)
    }

    func answer() {
        do throws(StoreError) {
            try commitOwnRows()
            writer.finish(decided)
        } catch {
            // The journal holds nothing of these writes, so that their callers can be told.
            writer.fail(decided, error)
        }
        decided = []
        // The queue may never be empty, and other nodes keep the journal's entries until this one has synced.
        if writer.isSyncDue, Instant.now >= writer.nextSync { writer.sync() }
        // What this entry had no room or no time for is the next of its tenants, and no longer before everybody else.
        writer.queue.putBack(waiting[...])
        waiting = []
    }

    /// Commits the rows that each node has for itself, without an entry.
    private func commitOwnRows() throws(StoreError) {
        guard let raw = open else { return }
        open = nil
        if writer.batch.changeCount > 0 { try writer.commit(raw, decided) } else { mdb_txn_abort(raw) }
    }

    func abort() {
        leaveOpenTransaction()
        waiting = decided + waiting
        decided = []
    }

    func forget() {
        leaveOpenTransaction()
        let forgotten = decided
        decided = []
        writer.fail(forgotten, .journal(.outcomeUnknown))
    }

    /// Refuses the waiting writes, when the engine has been away for too long. For changes that are on their way to the
    /// engine, nobody can say yet whether they take effect, and their callers are told so. They keep their transaction.
    /// What was decided with them and changes nothing is refused like the rest: the journal's end, for example, was
    /// asked for in the same batch.
    func refuseWaiting(because error: StoreError = .journal(.away)) {
        let sent = decided.filter { $0.isChanging && !$0.isExcluded }
        let refused = decided.filter { !$0.isChanging || $0.isExcluded } + waiting + rest()
        (decided, waiting) = ([], [])
        if !sent.isEmpty { writer.fail(sent[...], .journal(.outcomeUnknown)) }
        if !refused.isEmpty { writer.fail(refused[...], error) }
    }

    /// Refuses the waiting writes. Decided writes are still sent, or answered.
    func refuseUndecided(because error: StoreError) {
        let refused = waiting + rest()
        waiting = []
        if !refused.isEmpty { writer.fail(refused[...], error) }
    }

    private func rest() -> [WriteRequest] {
        guard case .batch(let requests) = writer.queue.takeNow(countMax: .max) else { return [] }
        return requests
    }

    func refuseRest() {
        refuseWaiting(because: writer.fatal ?? .journal(.away))
    }
}
