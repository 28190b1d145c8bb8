public import Base
import Synchronization

/// The one database of a server: typed tables over LMDB, reads on any thread, writes through one group-committing
/// writer. Must be closed before it is dropped.
public final class Store: Sendable {
    let environment: Environment
    let counters = WriteCounters()
    private let writer: Writer
    private let isClosed = Atomic(false)
    let isUpgradePending = Atomic(false)
    private let foundRollback = Mutex<Rollback?>(nil)

    /// Opens or makes the store in `configuration.directory` and starts its writer.
    ///
    /// A store that its witness contradicts is refused (`.rolledBack`). If `configuration` accepts that, or its
    /// durability is relaxed, the store is opened, and `rollback` holds the contradiction until `acceptRollback`.
    ///
    /// `authenticator` must be the one the store was made with, else `.corrupt(table: "meta")`. `onFatal` is called
    /// once, on the writer's thread, when the environment cannot be trusted any more: the process should end.
    public convenience init(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash,
        onFatal: @escaping @Sendable (StoreError) -> Void
    ) throws(StoreError) {
        let environment = try Environment(configuration, authenticator: authenticator, eventHash: eventHash)
        try self.init(environment) { counters throws(StoreError) in
            try Writer(environment, counters: counters, onFatal: onFatal)
        }
    }

    init(
        _ environment: Environment, makeWriter: (WriteCounters) throws(StoreError) -> Writer
    ) throws(StoreError) {
        self.environment = environment
        do throws(StoreError) {
            try environment.requireWitness()
            try environment.tables.open(in: environment.raw, makingMissing: true)
            self.writer = try makeWriter(counters)
        } catch {
            environment.close()
            throw error
        }
        do throws(StoreError) {
            try requireJournal()
            try requireVersion()
            start()
            try upgrade()
            if let rollback = try Self.throwingStoreErrors(compareWithWitness) {
                let configuration = environment.configuration
                guard configuration.acceptsRollback || configuration.durability == .relaxed else {
                    throw .rolledBack(rollback)
                }
                foundRollback.withLock { $0 = rollback }
            }
        } catch {
            close()
            throw error
        }
    }

    private func start() {
        guard let journal = environment.configuration.journal, let alarm = writer.alarm else { return writer.start() }
        writer.start { [writer] in JournaledWrites(writer, journal, alarm).runUntilClosed() }
    }

    /// Refuses a cluster's store without its journal, and the reverse. The writer does not run yet.
    private func requireJournal() throws(StoreError) {
        let configuration = environment.configuration
        switch (try journalPlace(), configuration.journal) {
        case (nil, .some): throw .journal(.notJoined)
        case (.some, nil) where !configuration.leavesJournal: throw .journal(.journalNotNamed)
        default: break
        }
    }

    /// Nil for a store that is in no cluster. Any thread.
    public func journalPlace() throws(StoreError) -> JournalPlace? {
        try Self.throwingStoreErrors { try read { try $0.journalPlace() } }
    }

    /// Whether other nodes write to the same journal.
    public var isInCluster: Bool { environment.isInCluster }

    /// Returns when this node has seen, after the call, that its store is at the journal's end. Then the store holds
    /// all writes that any node acknowledged before the call. Returns at once for a store that is in no cluster.
    ///
    /// `tenant`: in whose line the question waits.
    public func reachJournalEnd(tenant: Text = WriteMeter.server) async throws {
        guard isInCluster else { return }
        try await WriteMeter.$current.withValue(WriteMeter(tenant: tenant)) {
            try await write(for: .removal) { _ in }
        }
    }

    /// Nil for a store that is opened without a journal. Any thread.
    public var journalStatus: JournalStatus? {
        environment.configuration.journal == nil ? nil : environment.journalStatus.withLock { $0 }
    }

    public var journalCounters: JournalCounters { counters.journal }

    /// How the store disagreed with its witness when it was opened; nil after that is accepted.
    public var rollback: Rollback? { foundRollback.withLock { $0 } }

    func forgetRollback() { foundRollback.withLock { $0 = nil } }

    deinit { precondition(isClosed.load(ordering: .relaxed), "a Store was dropped without close()") }

    /// Finishes the queued writes, waits for running reads, and frees the directory. Blocks. Later calls return at
    /// once, later reads and writes throw `.closed`.
    @available(*, noasync, message: "blocks the thread")
    public func close() {
        writer.close()
        environment.close()
        isClosed.store(true, ordering: .relaxed)
    }
}

// MARK: - Reading

extension Store {
    /// Runs `body` over a snapshot that holds every write acknowledged so far, on the calling thread, without waiting.
    /// Within another read of this thread, `body` sees that read's snapshot; where reads share a snapshot
    /// (`StoreReader.beginSharing`), it sees that one.
    public func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result {
        try reader().read(body)
    }

    /// The calling thread's reader, which a loop may keep to save the look-up. Use it on this thread only.
    public func reader() throws(StoreError) -> StoreReader { try ThreadReaders.reader(for: environment) }

    /// Lets the calling thread's next read see everything committed so far, even where reads share a snapshot. Call it
    /// outside of a read. After `close`, every read throws anyway.
    public func readAnew() { try? reader().readAnew() }
}

// MARK: - Writing

extension Store {
    /// Queues `body` for the writer and returns its result once it is committed (and synced, see `Durability`).
    ///
    /// `body` runs on the writer's thread, maybe more than once: it must be a function of the transaction, of what it
    /// captured and of the time, must not block, and holds up every other write while it runs. It may run long after
    /// this call, so it reads the clock itself if it compares the time with that of another write. If `body` throws,
    /// its error is thrown here and nothing is written. Also throws `.overloaded`, `.full`, `.fatal` and `.closed`.
    ///
    /// `purpose`: how much of a full store the write may use; the task's own purpose if that allows more.
    /// `mayBePutOff`: the caller has to wait afterwards anyway, as `StoreConfiguration.spareTime` tells.
    @discardableResult
    public func write<Value: Sendable>(
        for purpose: WritePurpose = .growth, mayBePutOff: Bool = false,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value
    ) async throws -> Value {
        try await written { WriteRequest(for: purpose, mayBePutOff: mayBePutOff, body, .reply($0)) }
    }

    /// As `write`, and prepares the answer while the change is on its way to the disk. `prepare` gets what `body`
    /// returned, on the writer's thread, and must be quick. What it makes is returned when the change is durable, and
    /// dropped if the commit fails. Like `body`, it may be called more than once.
    public func write<Value: Sendable, Prepared: Sendable>(
        for purpose: WritePurpose = .growth, mayBePutOff: Bool = false,
        preparing prepare: @escaping @Sendable (Value) -> Prepared,
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value
    ) async throws -> Prepared {
        try await written {
            WriteRequest(for: purpose, mayBePutOff: mayBePutOff, preparing: prepare, body, .reply($0))
        }
    }

    private func written<Value: Sendable>(_ request: (Reply<Value>) -> WriteRequest) async throws -> Value {
        let trace = CallTrace.current
        let added = trace == nil ? nil : Instant.now
        defer {
            if let added { trace?.add(committedNanoseconds: Instant.now.nanoseconds(since: added)) }
        }
        // Proof of one answer: the writer refuses a request or finishes it, and a request is finished once.
        return try await answer { reply in try writer.add(request(reply)) }
    }

    /// As `write`, but calls `completion` on the writer's thread after the commit; it must be quick. If this function
    /// throws, `completion` is not called.
    public func write<Value: Sendable>(
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) throws(StoreError) {
        try writer.add(WriteRequest(body, .callback(completion)))
    }

    /// As `write`, blocking the calling thread: for start-up and tools.
    @available(*, noasync, message: "blocks the thread")
    @discardableResult
    public func writeBlocking<Value: Sendable>(
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws -> Value
    ) throws -> Value {
        precondition(!writer.isCurrent, "a blocking write on the writer's thread")
        let done = Semaphore()
        let outcome = Mutex<Result<Value, any Error>?>(nil)
        try write(body) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = outcome.withLock({ $0 }) else { preconditionFailure("a write ended without a result") }
        return try result.get()
    }

    /// The size to which the database may grow.
    public var mapByteCount: Int { environment.configuration.mapByteCount }

    var queuedWriteCount: Int { writer.queuedCount }
}

// MARK: - Opening

extension Store {
    /// Runs a body that throws nothing but `StoreError`, such as a read, or a step of opening the store.
    static func throwingStoreErrors<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
        do {
            return try body()
        } catch let error as StoreError {
            throw error
        } catch {
            // Proof: each body throws what the store throws, and nothing else.
            preconditionFailure("the store threw \(error)")
        }
    }

    /// A write that throws nothing but the store's own errors.
    func change<Value: Sendable>(
        _ body: @escaping @Sendable (borrowing WriteTransaction) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try Self.throwingStoreErrors { try writeBlocking { transaction in try body(transaction) } }
    }
}
