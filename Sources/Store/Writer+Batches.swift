import Base
internal import CLMDB

extension Writer {
    private static let rerunsMax = 4

    enum Attempt {
        /// The bodies of these first requests ran, and there is room for their changes. The transaction is open.
        case ready(OpaquePointer, ArraySlice<WriteRequest>)
        /// Aborted: the request at `index` threw after a change.
        case excluded(index: Int)
        /// Aborted: these requests ran, and what they write for `purpose` would take too much of the reserve.
        case refused(ArraySlice<WriteRequest>, WritePurpose, wasShort: Bool)
        /// These requests ran, or none could.
        case failed(ArraySlice<WriteRequest>, StoreError)
    }

    /// The next step after an attempt that was not committed.
    enum Remedy {
        /// Try the same requests again.
        case again
        /// Try these, the first of the requests.
        case shorter(ArraySlice<WriteRequest>)
        /// All these requests have failed, and their callers were told.
        case over(ArraySlice<WriteRequest>)
    }

    /// Runs and commits the first of `requests`, as many as there is time and room for, and gives the others back to
    /// the queue.
    func perform(_ requests: [WriteRequest]) {
        let done = performFirst(of: requests[...])
        queue.putBack(requests[done.endIndex...])
    }

    private func performFirst(of requests: ArraySlice<WriteRequest>) -> ArraySlice<WriteRequest> {
        var part = requests
        var rerunCount = 0
        while true {
            var attempt = attempt(part)
            if case .ready(let raw, let done) = attempt {
                do throws(StoreError) {
                    try commit(raw, done)
                    finish(done)
                    return done
                } catch {
                    attempt = .failed(done, error)
                }
            }
            switch remedy(for: attempt, part, &rerunCount) {
            case .again: continue
            case .shorter(let first): part = first
            case .over(let done): return done
            }
        }
    }

    func remedy(for attempt: Attempt, _ part: ArraySlice<WriteRequest>, _ rerunCount: inout Int) -> Remedy {
        switch attempt {
        case .ready: return .again
        case .excluded(let index):
            counters.reruns.add()
            rerunCount += 1
            // Each further failure would run the whole part again, so commit the requests up to it first.
            return rerunCount > Self.rerunsMax && index + 1 < part.endIndex ? .shorter(part[...index]) : .again
        case .refused(let done, let purpose, let wasShort):
            guard wasShort || done.count == 1 else { return .shorter(firstHalf(of: done)) }
            refuse(done, purpose)
            return .shorter(done)
        case .failed(let done, .full) where done.count > 1: return .shorter(firstHalf(of: done))
        // The end of the batch met a damaged record, for example of one tenant's log. The writes of others go on.
        case .failed(let done, .corrupt) where done.count > 1: return .shorter(firstHalf(of: done))
        case .failed(let done, let error):
            counters.failures.add()
            if error == .full { counters.refusals.add(UInt64(done.count)) }
            fail(done, error)
            return .over(done)
        }
    }

    func firstHalf(of part: ArraySlice<WriteRequest>) -> ArraySlice<WriteRequest> {
        for request in part where request.error as? StoreError != .full { request.isExcluded = false }
        return part[..<(part.startIndex + part.count / 2)]
    }

    /// Leaves the writes of `part` that changed something for `purpose`, or for a weaker one, out of its next runs.
    private func refuse(_ part: ArraySlice<WriteRequest>, _ purpose: WritePurpose) {
        for request in part where !request.isExcluded && request.isChanging && request.purpose <= purpose {
            request.isExcluded = true
            request.error = StoreError.full
            counters.refusals.add()
            counters.failures.add()
        }
    }

    /// Runs the bodies of `part` in a transaction, which stays open if it can be committed.
    func attempt(_ part: ArraySlice<WriteRequest>) -> Attempt {
        var done = part
        do throws(StoreError) {
            if let fatal { throw fatal }
            try space.requireLinkedFile()
            try rehearse(part)
            let raw = try begin()
            do throws(StoreError) {
                let transaction = WriteTransaction(raw: raw, environment: environment, batch: batch)
                switch try run(part, in: transaction) {
                case .done(let ran): done = ran
                case .threw(let index):
                    mdb_txn_abort(raw)
                    return .excluded(index: index)
                }
                if batch.changeCount > 0 || space.isInTrouble {
                    let purpose = purpose(of: done)
                    let verdict = try space.admit(raw, purpose: purpose, changeCount: batch.changeCount)
                    if case .refused(let wasShort) = verdict {
                        mdb_txn_abort(raw)
                        return .refused(done, purpose, wasShort: wasShort)
                    }
                    if let changes = batch.changes, batch.changeCount > 0 {
                        let list = StoreChanges(changes: changes, topics: batch.topics)
                        try environment.configuration.beforeCommit?(list)
                    }
                }
                return .ready(raw, done)
            } catch {
                mdb_txn_abort(raw)
                throw error
            }
        } catch {
            return .failed(done, error)
        }
    }

    /// Commits the transaction that `attempt` left open, and announces it. Each request of `part` costs its share of
    /// the time, by its changes.
    func commit(_ raw: OpaquePointer, _ part: ArraySlice<WriteRequest>) throws(StoreError) {
        let begin = Instant.now
        for request in part { request.prepare() }
        try commit(raw, for: purpose(of: part))
        guard batch.changeCount > 0 else { return }
        let nanosecondsPerChange = Instant.now.nanoseconds(since: begin) / Int64(batch.changeCount)
        for request in part where !request.isExcluded {
            request.cost += nanosecondsPerChange * Int64(request.changeCount)
        }
    }

    func commit(_ raw: OpaquePointer, for purpose: WritePurpose) throws(StoreError) {
        let snapshot = Snapshot(of: raw)
        // If the commit fails, LMDB aborts the transaction by itself.
        let code = counters.waitingForDisk { commitOutcome(mdb_txn_commit(raw)) }
        guard code == MDB_SUCCESS else { throw space.meaning(of: code) }
        if batch.changeCount > 0 {
            space.committed(purpose)
            counters.commits.add()
            if environment.configuration.durability == .relaxed { isSyncDue = true }
            environment.noteCommit(event: batch.newestEvent)
        }
        environment.announce(batch.topics, batch.rows, in: snapshot)
    }

    func begin(isRecording: Bool = true) throws(StoreError) -> OpaquePointer {
        let raw = try LMDB.beginTransaction(in: environment.raw)
        batch.begin(isRecording: isRecording)
        return raw
    }

    /// The weakest purpose among the writes of `part` that changed something.
    private func purpose(of part: ArraySlice<WriteRequest>) -> WritePurpose {
        part.reduce(.removal) { $1.isChanging && !$1.isExcluded ? min($0, $1.purpose) : $0 }
    }

    enum Run {
        /// These first requests ran, or were left out: all, or those that the batch had time for.
        case done(ArraySlice<WriteRequest>)
        /// The request at this index threw after a change.
        case threw(Int)
    }

    /// Runs the bodies of `part` until the batch has taken `Limits.writeBatchTimeMax`; one at least.
    func run(_ part: ArraySlice<WriteRequest>, in transaction: borrowing WriteTransaction) throws(StoreError) -> Run {
        let begin = Instant.now
        let end = begin.advanced(by: environment.limits.writeBatchTimeMax)
        var (now, done) = (begin, part)
        for index in part.indices where !part[index].isExcluded {
            let request = part[index]
            try run(request, in: transaction)
            let ended = Instant.now
            if request.isExcluded {
                // All that ran before it runs again because of it.
                request.cost = ended.nanoseconds(since: begin)
                return .threw(index)
            }
            request.cost = ended.nanoseconds(since: now)
            now = ended
            if now >= end {
                done = part[...index]
                break
            }
        }
        try transaction.finishBatch()
        return .done(done)
    }

    /// Runs one body. Excludes a request that threw after a change.
    private func run(_ request: WriteRequest, in transaction: borrowing WriteTransaction) throws(StoreError) {
        let changesBefore = batch.changeCount
        let addedBefore = batch.addedByteCount
        batch.isGrowth = false
        request.error = nil
        // What the body before borrowed.
        batch.longValues.removeAll()
        do {
            try request.run(in: transaction)
        } catch {
            request.error = error
        }
        request.isGrowth = batch.isGrowth
        if let failure = batch.failure { throw failure }
        request.changeCount = batch.changeCount - changesBefore
        request.isExcluded = request.error != nil && request.changeCount > 0
        request.addedByteCount = request.changeCount > 0 ? batch.addedByteCount - addedBefore : nil
    }

    func finish(_ part: ArraySlice<WriteRequest>) {
        counters.batches.add()
        counters.writes.add(UInt64(part.count))
        queue.ended(part)
        // The first of many is not kept waiting for the last.
        if part.count <= Self.answersTogetherMax { heldWakeups.begin() }
        defer { heldWakeups.end() }
        for request in part {
            if request.error == nil {
                request.count()
                if request.isOfCall {
                    counters.largestWrite.set(max(counters.largestWrite.value, Int64(request.changeCount)))
                }
            }
            request.finish()
        }
    }

    func fail(_ part: ArraySlice<WriteRequest>, _ error: StoreError) {
        if error.endsTheStore || space.isGoneForGood, fatal == nil {
            fatal = error
            queue.close(with: error)
            environment.uses.report(error)
        }
        queue.ended(part)
        for request in part {
            request.error = error
            request.finish()
        }
    }
}
