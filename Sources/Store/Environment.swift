internal import Base
internal import CLMDB
internal import CStoreFault
import Glibc
import Synchronization

/// One open LMDB environment: the only owner of `MDB_env` and of the lock on the directory. Any thread.
///
/// Reads go through `StoreReader`s, writes through the one `Writer` thread. Both end before `close()` frees `MDB_env`.
final class Environment: @unchecked Sendable {
    // Unchecked: all stored properties but those in a Mutex are set by init and never changed. LMDB's functions
    // on an `MDB_env` are thread-safe, and `close()` waits for every caller in `whileOpen` or in a read.
    let raw: OpaquePointer
    let authenticator: any RecordAuthenticator
    let eventHash: EventHash
    let limits: Limits
    let configuration: StoreConfiguration
    /// Whether other nodes write to the same journal.
    var isInCluster: Bool { configuration.journal != nil }

    /// Indexed by table id.
    private let handles: UnsafeMutablePointer<MDB_dbi>
    private let owners: [RowOwner]
    /// Indexed by table id; nil for a table without news.
    private let tellers: [TableDeclaration?]
    let followers = Followers()
    /// Every table, the store's own first.
    let tables: [TableDeclaration]
    private let lock: DirectoryLock
    /// The newest meta page as it was before this process wrote anything.
    let metaAtStart: DataFile.Meta
    private let registry = Mutex(Registry())
    private let witness = Mutex<Witness?>(nil)
    private let committedEvent = Atomic<UInt64>(0)
    /// Tenants that were written to while the sum of their space was unknown.
    let tenantsToCount = Mutex<Set<Text>>([])
    let journalStatus = Mutex(JournalStatus())
    /// The highest value that the time mark may have: in a cluster, the engine's time and a little more.
    let timeMax = Atomic<Int64>(.max)

    private struct Registry {
        var isClosed = false
        /// Nil after it was called.
        var onFatal: (@Sendable (StoreError) -> Void)?
        var useCount = 0
        var readers: [ObjectIdentifier: StoreReader] = [:]
    }

    /// Checks the data file and opens the tables that it has. Writes nothing, but makes a data file if there is none.
    init(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash
    ) throws(StoreError) {
        self.configuration = configuration
        self.authenticator = authenticator
        self.eventHash = eventHash
        self.limits = configuration.limits
        if let lock = configuration.lock {
            self.lock = lock
        } else {
            self.lock = try DirectoryLock(
                configuration.directory, createsIfMissing: configuration.createsIfMissing)
        }
        try DataFile.createIfMissing(configuration)
        try lock.lockDataFile()
        guard let file = try DataFile(path: DataFile.path(in: configuration.directory)) else { throw .missing }
        self.metaAtStart = try file.check()
        self.tables = Schema.tables(with: configuration.tables)
        try file.checkTables(of: tables, authenticator)
        self.raw = try Self.openRaw(configuration)
        self.handles = .allocate(capacity: 256)
        handles.initialize(repeating: 0, count: 256)
        var owners = [RowOwner](repeating: .nobody, count: 256)
        var tellers = [TableDeclaration?](repeating: nil, count: 256)
        for table in tables {
            owners[Int(table.id)] = table.owner
            if table.news != .none { tellers[Int(table.id)] = table }
        }
        (self.owners, self.tellers) = (owners, tellers)
        do throws(StoreError) {
            try openTables(makingMissing: false)
        } catch {
            store_fault_forget()
            mdb_env_close(raw)
            throw error
        }
    }

    deinit { handles.deallocate() }

    private static func openRaw(_ configuration: StoreConfiguration) throws(StoreError) -> OpaquePointer {
        let raw = try LMDB.makeEnvironment()
        do throws(StoreError) {
            try StoreError.check(mdb_env_set_mapsize(raw, configuration.mapByteCount), "mdb_env_set_mapsize")
            try StoreError.check(
                mdb_env_set_maxdbs(raw, MDB_dbi(Schema.tables(with: configuration.tables).count)), "mdb_env_set_maxdbs")
            let readersMax = UInt32(configuration.readersMax)
            try StoreError.check(mdb_env_set_maxreaders(raw, readersMax), "mdb_env_set_maxreaders")
            // Never NOSYNC (corrupts on power failure) and never WRITEMAP (SIGBUS on a full disk).
            var flags = UInt32(MDB_NOTLS)
            if configuration.durability == .relaxed { flags |= UInt32(MDB_NOMETASYNC) }
            if configuration.isReadOnly { flags |= UInt32(MDB_RDONLY) }
            try StoreError.check(mdb_env_open(raw, configuration.directory, flags, 0o600), "mdb_env_open")
            try keepFromOtherPrograms(raw)
            // A reader that was killed pins its snapshot's pages for ever: the file would grow without bound.
            try StoreError.check(mdb_reader_check(raw, nil), "mdb_reader_check")
            try watchForDamage(raw, configuration)
        } catch {
            mdb_env_close(raw)
            throw error
        }
        return raw
    }

    /// A program that this process starts would inherit the data file. lmdb.h, mdb_env_get_fd: "Other LMDB file
    /// descriptors have FD_CLOEXEC."
    private static func keepFromOtherPrograms(_ raw: OpaquePointer) throws(StoreError) {
        var descriptor: mdb_filehandle_t = -1
        try StoreError.check(mdb_env_get_fd(raw, &descriptor), "mdb_env_get_fd")
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Damage that no check found shows when its page is read. The process cannot survive it; it can only report it.
    private static func watchForDamage(_ raw: OpaquePointer, _ configuration: StoreConfiguration) throws(StoreError) {
        guard let damage = configuration.damage else { return }
        try StoreError.check(
            mdb_env_set_assert(raw) { _, _ in store_fault_assertion_failed() }, "mdb_env_set_assert")
        let (ofStore, ofOthers) = (keptForever(damage.lineOfStore), keptForever(damage.lineOfOthers))
        let lines = store_fault_lines(
            of_store: ofStore.baseAddress, of_store_byte_count: ofStore.count,
            of_others: ofOthers.baseAddress, of_others_byte_count: ofOthers.count)
        store_fault_watch(DataFile.path(in: configuration.directory), lines, damage.exitStatus)
    }

    /// Never freed: a signal handler may read it at any time.
    private static func keptForever(_ line: [UInt8]) -> UnsafeMutableBufferPointer<CChar> {
        let kept = UnsafeMutableBufferPointer<CChar>.allocate(capacity: line.count)
        _ = kept.initialize(from: line.map { CChar(bitPattern: $0) })
        return kept
    }

    /// Called at a start only, because mdb_dbi_open must not run beside other transactions. No table is ever closed.
    func openTables(makingMissing: Bool) throws(StoreError) {
        let transaction = try LMDB.beginTransaction(in: raw, isReadOnly: !makingMissing)
        do throws(StoreError) {
            for table in tables where !hasTable(table.id) {
                let flags = makingMissing ? UInt32(MDB_CREATE) : 0
                let code = mdb_dbi_open(transaction, table.name.description, flags, handles + Int(table.id))
                if !makingMissing, code == MDB_NOTFOUND { continue }
                try StoreError.check(code, "mdb_dbi_open")
            }
        } catch {
            mdb_txn_abort(transaction)
            throw error
        }
        try StoreError.check(mdb_txn_commit(transaction), "mdb_txn_commit")
    }

    /// False if the file has no such table, and nobody has made the missing tables yet.
    func hasTable(_ id: UInt8) -> Bool { handles[Int(id)] != 0 }

    /// The table's LMDB handle. A table that was not declared at `open` is our own mistake.
    @inline(__always)
    func handle(of table: UInt8) -> MDB_dbi {
        let handle = handles[Int(table)]
        precondition(handle != 0, "table \(table) was not declared")
        return handle
    }

    /// The place in the table's keys that names the tenant.
    @inline(__always)
    func owner(of table: UInt8) -> RowOwner { owners[Int(table)] }

    /// The topic that a change of the row announces; nil for a table without news.
    @inline(__always)
    func topic(ofRow key: UnsafeRawBufferPointer, in table: UInt8) -> ChangeTopic? {
        tellers[Int(table)]?.topic(ofRow: key)
    }

    /// Whether changes of the table's rows are told by their hashes.
    @inline(__always)
    func marksRows(of table: UInt8) -> Bool { tellers[Int(table)]?.news == .marked }

    /// LMDB's own table of free pages.
    static let freePages = MDB_dbi(0)

    /// LMDB's own table of tables, and all that were declared.
    var openHandles: [MDB_dbi] { [1] + tables.map { handles[Int($0.id)] } }

    /// Nil for an id that this version does not know.
    func table(_ id: UInt8) -> TableDeclaration? { tables.first { $0.id == id } }

    func corrupt(_ id: UInt8) -> StoreError { .corrupt(table: table(id)?.name.description ?? "\(id)") }
}

// MARK: - The witness

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

// MARK: - Ending

extension Environment {
    /// Runs `body` with the environment kept open.
    func whileOpen<Result>(_ body: (OpaquePointer) throws(StoreError) -> Result) throws(StoreError) -> Result {
        let isOpen = registry.withLock { registry in
            if !registry.isClosed { registry.useCount += 1 }
            return !registry.isClosed
        }
        guard isOpen else { throw .closed }
        defer { registry.withLock { $0.useCount -= 1 } }
        do throws(StoreError) {
            return try body(raw)
        } catch {
            if error == .fatal(code: MDB_PANIC) { report(error) }
            throw error
        }
    }

    /// Sets the handler that is called once, when the environment cannot be trusted any more.
    func onFatal(_ handler: @escaping @Sendable (StoreError) -> Void) {
        registry.withLock { $0.onFatal = handler }
    }

    /// Any thread: a reader may be the first to get LMDB's error.
    func report(_ error: StoreError) {
        let handler = registry.withLock { registry in
            defer { registry.onFatal = nil }
            return registry.onFatal
        }
        handler?(error)
    }

    func add(_ reader: StoreReader) throws(StoreError) {
        let isOpen = registry.withLock { registry in
            if !registry.isClosed { registry.readers[ObjectIdentifier(reader)] = reader }
            return !registry.isClosed
        }
        guard isOpen else { throw .closed }
    }

    func remove(_ reader: StoreReader) {
        registry.withLock { _ = $0.readers.removeValue(forKey: ObjectIdentifier(reader)) }
    }

    /// Waits for reads and `whileOpen` to end, refuses new ones, frees the environment and the directory's lock. The
    /// writer must have ended. Later calls do nothing.
    func close() {
        let readers: [StoreReader]? = registry.withLock { registry in
            if registry.isClosed { return nil }
            registry.isClosed = true
            defer { registry.readers = [:] }
            return Array(registry.readers.values)
        }
        guard let readers else { return }
        for reader in readers { reader.retire() }
        while registry.withLock({ $0.useCount }) > 0 { usleep(100) }
        witness.withLock { $0.take() }?.close()
        store_fault_forget()
        mdb_env_close(raw)
        lock.release()
    }
}
