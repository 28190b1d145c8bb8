import Base
internal import CLMDB
import Glibc
import Synchronization

/// LMDB's single writer: one thread that runs everything queued in one transaction, commits once, then answers all.
///
/// A batch whose commit fails for lack of space is halved until the writes that do fit are committed, so that a giant
/// write fails alone. In a store that is full already, the writes that may not use the reserve fail together. After a
/// fatal error, everything queued and everything later is refused.
final class Writer: @unchecked Sendable {
    // Unchecked: the variables below belong to the writer's thread; `thread` is set once by `start` before it is used
    // by `close`.
    let environment: Environment
    let queue: WriteQueue
    /// The thread sleeps on it if it waits for the journal's engine as well.
    let alarm: EventDescriptor?
    let counters: WriteCounters
    let space: StoreSpace
    private let thread = Mutex<OSThread?>(nil)
    private let threadID = Atomic<UInt>(0)
    let commitOutcome: @Sendable (Int32) -> Int32

    let batch: WriteBatch
    let heldWakeups = HeldWakeups()
    var fatal: StoreError?
    private var lastSync = Instant.now
    var isSyncDue = false

    static let answersTogetherMax = 8
    private static let spareTimeMax = Duration.milliseconds(5)

    /// `commitOutcome` lets a test turn the result of mdb_txn_commit into that of a failing disk, `allocate` into that
    /// of a full disk.
    init(
        _ environment: Environment, counters: WriteCounters, onFatal: @escaping @Sendable (StoreError) -> Void,
        allocate: @escaping FileGrowth.Allocate = FileGrowth.system,
        commitOutcome: @escaping @Sendable (Int32) -> Int32 = { $0 }
    ) throws(StoreError) {
        self.environment = environment
        self.alarm = environment.configuration.journal == nil ? nil : try EventDescriptor()
        self.queue = WriteQueue(countMax: environment.limits.writeQueueMax, alarm: alarm)
        self.counters = counters
        let configuration = environment.configuration
        self.space = try StoreSpace(
            of: environment.raw, tables: environment.tables.allHandles, limits: environment.limits, counters: counters,
            allocate: allocate, onTrouble: configuration.onTrouble)
        self.commitOutcome = commitOutcome
        self.batch = WriteBatch(isRecording: configuration.beforeCommit != nil || configuration.journal != nil)
        environment.uses.onFatal(onFatal)
    }

    /// Starts the thread, which runs `work` in a cluster, and otherwise `runUntilClosed`.
    func start(_ work: (@Sendable () -> Void)? = nil) {
        thread.withLock { thread in
            thread = OSThread(name: "store-writer") { [self] in
                threadID.store(UInt(pthread_self()), ordering: .relaxed)
                if let work { work() } else { runUntilClosed() }
            }
        }
    }

    var queuedCount: Int { queue.count }
    var isCurrent: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    func add(_ request: WriteRequest) throws(StoreError) { try queue.add(request) }

    /// Finishes the queued writes, syncs, and waits for the thread. Later calls do nothing.
    func close() {
        precondition(!isCurrent, "the store is closed from its own writer")
        queue.close(with: .closed)
        thread.withLock { $0.take() }?.join()
    }

    private func runUntilClosed() {
        let limits = environment.limits
        while true {
            let deadline = isSyncDue ? nextSync : nil
            switch queue.take(countMax: limits.writeBatchMax, deadline: deadline, spareTime: spareTime) {
            case .batch(let requests):
                perform(requests)
                if isSyncDue, Instant.now >= nextSync { sync() }
            case .timedOut:
                sync()
            case .closed:
                if isSyncDue { sync() }
                return
            }
        }
    }

    /// For how long writes may wait for others to join their batch. Without such time nothing is waited for: while a
    /// batch is committed, the next one gathers (docs/decisions/0146).
    private func spareTime() -> Duration { min(environment.configuration.spareTime(), Self.spareTimeMax) }
}

// MARK: - Relaxed durability

extension Writer {
    var nextSync: Instant { lastSync.advanced(by: environment.configuration.relaxedSyncInterval) }

    func sync() {
        lastSync = .now
        isSyncDue = false
        let code = counters.waitingForDisk { mdb_env_sync(environment.raw, 1) }
        if code == MDB_SUCCESS { environment.noteSync() }
        guard code != MDB_SUCCESS, fatal == nil else { return }
        // Acknowledged writes may be lost: nothing after this can be trusted.
        counters.failures.add()
        fail([], .fatal(code: code))
    }
}

extension Environment {
    /// Announces a commit before its writes are answered. The writer's thread only.
    func announce(_ topics: [ChangeTopic], _ rows: [MarkedRow], in snapshot: Snapshot) {
        guard !topics.isEmpty || !rows.isEmpty else { return }
        for failure in followers.tell(Announcement(topics: topics, rows: rows, snapshot: snapshot)) {
            configuration.onCopyFailure(failure.copy.name, failure.error)
        }
    }
}
