import Base
internal import CLMDB
import Journal
import Synchronization

/// What waits to be written, and what becomes of it.
extension JournaledWrites {
    /// Takes what waits in the queue. False: the store is closed and nothing waits.
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

    /// Runs the bodies of what waits, as much of it as one entry can hold.
    func decide() {
        dropOverdue()
        var part = waiting[...]
        var rerunCount = 0
        for request in waiting {
            request.isExcluded = false
            request.error = nil
        }
        while !part.isEmpty {
            let attempt = writer.attempt(part)
            if case .ready(let raw) = attempt {
                if writer.batch.entry != nil, refuseForClock(raw, part) { continue }
                if let smaller = tooLarge(raw, part) {
                    part = smaller
                    continue
                }
                (open, decided) = (raw, part)
                waiting.removeFirst(part.count)
                entry = writer.batch.entry
                return handle(.ran(entry == nil ? .refusals : .changes))
            }
            switch writer.remedy(for: attempt, part, &rerunCount) {
            case .again: continue
            // What comes after it stays in `waiting`.
            case .split(let parts): part = parts.last ?? []
            case .over:
                waiting.removeFirst(part.count)
                part = writer.fatal == nil ? waiting[...] : []
            }
        }
        // Every one of them failed for a reason of this node's own, and was told so.
        handle(.ran(.refusals))
    }

    /// Leaves out the writes that change something, if this node's clock is too far from the engine's: what they stamp
    /// would bind all nodes.
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

    /// Leaves out the writes whose callers have their answer already: they waited for the engine, or lost a race, until
    /// the deadline had passed. What is dropped here is certain not to have happened.
    private func dropOverdue() {
        let now = Instant.now
        let overdue = waiting.filter { $0.isOverdue(at: now) }
        guard !overdue.isEmpty else { return }
        waiting.removeAll { $0.isOverdue(at: now) }
        writer.fail(overdue[...], .overdue)
    }

    /// The part to try instead of one whose changes are too large for one entry; nil if they are not.
    private func tooLarge(_ raw: OpaquePointer, _ part: ArraySlice<WriteRequest>) -> ArraySlice<WriteRequest>? {
        let byteCount = writer.batch.changesByteCount
        let byteCountMax = part.count == 1 ? limits.journal.entryByteCountMax : limits.journal.batchByteCountMax
        guard byteCount > byteCountMax else { return nil }
        mdb_txn_abort(raw)
        if part.count > 1 { return writer.halves(of: part).last }
        waiting.removeFirst()
        writer.fail(part, .journal(.entryTooLarge))
        return waiting[...]
    }

    func answer() {
        do throws(StoreError) {
            try commitOwnRows()
            writer.finish(decided)
            decided = []
            if !waiting.isEmpty { handle(.requestsCame) }
        } catch {
            end(error)
        }
    }

    /// Rows that each node has for itself are committed without an entry.
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

    /// The engine has been away for too long. What is not on its way there is refused; of what is, nobody can say yet
    /// whether it takes effect, and so its callers are told. It keeps its transaction.
    func refuseWaiting(because error: StoreError = .journal(.away)) {
        let (unknown, refused) = (decided, waiting + rest())
        (decided, waiting) = ([], [])
        if !unknown.isEmpty { writer.fail(unknown, .journal(.outcomeUnknown)) }
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
