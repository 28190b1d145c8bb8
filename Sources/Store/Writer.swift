import Base
internal import CLMDB
import Glibc
import Synchronization

/// LMDB's single writer: one thread that runs everything queued in one transaction, commits once, then answers all.
///
/// A batch whose commit fails for lack of space is halved until the writes that do fit are committed, so that a giant
/// one fails alone. In a store that is full already, the writes that may not use the reserve fail together. After a
/// fatal error everything queued and everything later is refused.
final class Writer: @unchecked Sendable {
    // Unchecked: the variables below belong to the writer's thread; `thread` is set once by `start` before it is used
    // by `close`.
    let environment: Environment
    private let queue: WriteQueue
    private let counters: WriteCounters
    private let space: StoreSpace
    private let thread = Mutex<OSThread?>(nil)
    private let threadID = Atomic<UInt>(0)
    private let commitOutcome: @Sendable (Int32) -> Int32

    let batch: WriteBatch
    private var fatal: StoreError?
    private var lastSync = Instant.now
    private var isSyncDue = false
    private var countExpected = 1
    private var patience = Duration.zero

    private static let rerunsMax = 4
    private static let patienceMax = Duration.milliseconds(1)
    private static let spareTimeMax = Duration.milliseconds(5)

    /// `commitOutcome` lets a test turn what mdb_txn_commit returned into a failing disk, `allocate` lets it be a full
    /// one.
    init(
        _ environment: Environment, counters: WriteCounters, onFatal: @escaping @Sendable (StoreError) -> Void,
        allocate: @escaping FileGrowth.Allocate = FileGrowth.system,
        commitOutcome: @escaping @Sendable (Int32) -> Int32 = { $0 }
    ) throws(StoreError) {
        self.environment = environment
        self.queue = WriteQueue(countMax: environment.limits.writeQueueMax)
        self.counters = counters
        self.space = try StoreSpace(environment, counters: counters, allocate: allocate)
        self.commitOutcome = commitOutcome
        self.batch = WriteBatch(isRecording: environment.configuration.beforeCommit != nil)
        environment.onFatal(onFatal)
    }

    func start() {
        thread.withLock { $0 = OSThread(name: "store-writer") { [self] in runUntilClosed() } }
    }

    var queuedCount: Int { queue.count }
    var isCurrent: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    func add(_ request: WriteRequest) throws(StoreError) { try queue.add(request) }

    /// Finishes what is queued, syncs, and waits for the thread. Later calls do nothing.
    func close() {
        precondition(!isCurrent, "the store is closed from its own writer")
        queue.close(with: .closed)
        thread.withLock { $0.take() }?.join()
    }

    private func runUntilClosed() {
        threadID.store(UInt(pthread_self()), ordering: .relaxed)
        let limits = environment.limits
        while true {
            gather()
            switch queue.take(countMax: limits.writeBatchMax, deadline: isSyncDue ? nextSync : nil) {
            case .batch(let requests):
                let begin = Instant.now
                perform(requests)
                patience = min(.nanoseconds(Instant.now.nanoseconds(since: begin) / 8), Self.patienceMax)
                countExpected = min(requests.count + queue.count, limits.writeBatchMax)
                if isSyncDue, Instant.now >= nextSync { sync() }
            case .timedOut:
                sync()
            case .closed:
                if isSyncDue { sync() }
                return
            }
        }
    }

    /// Lets more writes into the next batch: those that are likely to come back at once, now that the last batch was
    /// answered; and all that come while there is time to spare.
    private func gather() {
        let spareTime = min(environment.configuration.spareTime(), Self.spareTimeMax)
        if spareTime > patience {
            queue.putOff(spareTime, orUntil: environment.limits.writeBatchMax)
        } else if countExpected > 1 {
            queue.gather(countExpected, patience: patience)
        }
    }
}

// MARK: - Batches

extension Writer {
    private enum Attempt {
        case committed
        /// Aborted: the request at `index` threw after a change.
        case excluded(index: Int)
        /// Aborted: its writes for `purpose` would take too much of the reserve.
        case refused(WritePurpose, wasShort: Bool)
        case failed(StoreError)
    }

    /// Runs, commits and finishes `requests`.
    private func perform(_ requests: [WriteRequest]) {
        var parts = [requests[...]]
        while let part = parts.popLast() {
            if let rest = performPart(part) { parts += rest }
        }
    }

    /// Finishes `part`, or returns the parts it has to be split into, the last one first.
    private func performPart(_ part: ArraySlice<WriteRequest>) -> [ArraySlice<WriteRequest>]? {
        var rerunCount = 0
        while true {
            switch attempt(part) {
            case .committed:
                finish(part)
                return nil
            case .excluded(let index):
                counters.reruns.add()
                rerunCount += 1
                // Each further failure would run the whole part again: commit what comes before it first.
                let rest = part[(index + 1)...]
                if rerunCount > Self.rerunsMax, !rest.isEmpty { return [rest, part[...index]] }
            case .refused(let purpose, let wasShort) where wasShort || part.count == 1:
                refuse(part, purpose)
            case .failed(.full) where part.count > 1, .refused:
                let middle = part.startIndex + part.count / 2
                for request in part where request.error as? StoreError != .full { request.isExcluded = false }
                return [part[middle...], part[..<middle]]
            case .failed(let error):
                counters.failures.add()
                if error == .full { counters.refusals.add(UInt64(part.count)) }
                fail(part, error)
                return nil
            }
        }
    }

    /// Leaves the writes of `part` that changed something for `purpose` out of its next run, for good.
    private func refuse(_ part: ArraySlice<WriteRequest>, _ purpose: WritePurpose) {
        for request in part where !request.isExcluded && request.isChanging && request.purpose <= purpose {
            request.isExcluded = true
            request.error = StoreError.full
            counters.refusals.add()
            counters.failures.add()
        }
    }

    private func attempt(_ part: ArraySlice<WriteRequest>) -> Attempt {
        do throws(StoreError) {
            if let fatal { throw fatal }
            try space.requireLinkedFile()
            try rehearse(part)
            let raw = try begin()
            do throws(StoreError) {
                if let index = try run(part, in: WriteTransaction(raw: raw, environment: environment, batch: batch)) {
                    mdb_txn_abort(raw)
                    return .excluded(index: index)
                }
                if batch.changeCount > 0 || space.isInTrouble {
                    let purpose = purpose(of: part)
                    let verdict = try space.admit(raw, purpose: purpose, changeCount: batch.changeCount)
                    if case .refused(let wasShort) = verdict {
                        mdb_txn_abort(raw)
                        return .refused(purpose, wasShort: wasShort)
                    }
                    if let changes = batch.changes, batch.changeCount > 0 {
                        let list = StoreChanges(changes: changes, topics: batch.topics)
                        try environment.configuration.beforeCommit?(list)
                    }
                }
            } catch {
                mdb_txn_abort(raw)
                throw error
            }
            let snapshot = Snapshot(of: raw)
            // Aborts by itself when it fails.
            let code = commitOutcome(mdb_txn_commit(raw))
            guard code == MDB_SUCCESS else { throw space.meaning(of: code) }
            if batch.changeCount > 0 {
                space.committed(purpose(of: part))
                counters.commits.add()
                if environment.configuration.durability == .relaxed { isSyncDue = true }
                environment.noteCommit(event: batch.newestEvent)
            }
            environment.announce(batch.topics, batch.rows, in: snapshot)
            return .committed
        } catch {
            return .failed(error)
        }
    }

    func begin() throws(StoreError) -> OpaquePointer {
        var begun: OpaquePointer?
        try StoreError.check(mdb_txn_begin(environment.raw, nil, 0, &begun), "mdb_txn_begin")
        guard let raw = begun else { preconditionFailure("mdb_txn_begin made nothing") }
        batch.begin()
        return raw
    }

    /// The weakest purpose among the writes of `part` that changed something.
    private func purpose(of part: ArraySlice<WriteRequest>) -> WritePurpose {
        part.reduce(.removal) { $1.isChanging && !$1.isExcluded ? min($0, $1.purpose) : $0 }
    }

    /// The index of a request that threw after a change, nil if the transaction can be committed.
    func run(
        _ part: ArraySlice<WriteRequest>, in transaction: borrowing WriteTransaction
    ) throws(StoreError) -> Int? {
        for index in part.indices where !part[index].isExcluded {
            let request = part[index]
            let changesBefore = batch.changeCount
            let addedBefore = batch.addedByteCount
            do {
                request.error = nil
                batch.isGrowth = false
                try request.run(in: transaction)
            } catch {
                request.error = error
            }
            request.isGrowth = batch.isGrowth
            if let failure = batch.failure { throw failure }
            if request.error != nil, batch.changeCount != changesBefore {
                request.isExcluded = true
                return index
            }
            request.addedByteCount =
                batch.changeCount == changesBefore ? nil : batch.addedByteCount - addedBefore
        }
        try transaction.finishBatch()
        return nil
    }

    private func finish(_ part: ArraySlice<WriteRequest>) {
        counters.batches.add()
        counters.writes.add(UInt64(part.count))
        for request in part {
            if request.error == nil { request.count() }
            request.finish()
        }
    }

    private func fail(_ part: ArraySlice<WriteRequest>, _ error: StoreError) {
        if error.endsTheStore || space.isGoneForGood, fatal == nil {
            fatal = error
            queue.close(with: error)
            environment.report(error)
        }
        for request in part {
            request.error = error
            request.finish()
        }
    }
}

// MARK: - Relaxed durability

extension Writer {
    private var nextSync: Instant { lastSync.advanced(by: environment.configuration.relaxedSyncInterval) }

    private func sync() {
        lastSync = .now
        isSyncDue = false
        let code = mdb_env_sync(environment.raw, 1)
        if code == MDB_SUCCESS { environment.noteSync() }
        guard code != MDB_SUCCESS, fatal == nil else { return }
        // Acknowledged writes may be lost: nothing after this can be trusted.
        counters.failures.add()
        fail([], .fatal(code: code))
    }
}
