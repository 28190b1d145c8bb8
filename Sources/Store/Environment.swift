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

    let tables: OpenTables
    let uses = EnvironmentUses()
    let followers = Followers()
    private let lock: DirectoryLock
    /// The newest meta page as it was before this process wrote anything.
    let metaAtStart: DataFile.Meta
    let witness = Mutex<Witness?>(nil)
    let committedEvent = Atomic<UInt64>(0)
    /// Tenants that were written to while the sum of their space was unknown.
    let tenantsToCount = Mutex<Set<Text>>([])
    /// How far it has come with what damaged rows left.
    let mending = Mending()
    let damagedExpiries = DamagedExpiries()
    let journalStatus = Mutex(JournalStatus())
    /// Whether long values are put in pieces. Not before the store is marked with the version that has them.
    let storesPieces = Atomic(false)
    /// The longest piece: with its MAC and the head of LMDB's page, it takes one page of the file.
    let pieceByteCountMax: Int
    /// The highest value that the time mark may have: in a cluster, the engine's time and a little more.
    let timeMax = Atomic<Int64>(.max)

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
            self.lock = try DirectoryLock(configuration.directory, for: configuration.use)
        }
        try DataFile.createIfMissing(configuration)
        try lock.lockDataFile()
        guard let file = try DataFile(path: DataFile.path(in: configuration.directory)) else { throw .missing }
        self.metaAtStart = try file.check()
        let declared = Schema.tables(with: configuration.tables)
        try file.checkTables(of: declared, authenticator)
        self.raw = try Self.openRaw(configuration, tableCount: declared.count)
        self.pieceByteCountMax = LMDB.pageByteCount(in: raw) - LongValueMark.pageHeadByteCount - RecordSeal.byteCount
        self.tables = OpenTables(declared)
        do throws(StoreError) {
            try tables.open(in: raw, makingMissing: false)
        } catch {
            store_fault_forget()
            mdb_env_close(raw)
            throw error
        }
    }

    deinit { tables.deallocate() }

    private static func openRaw(
        _ configuration: StoreConfiguration, tableCount: Int
    ) throws(StoreError) -> OpaquePointer {
        let raw = try LMDB.makeEnvironment()
        do throws(StoreError) {
            try StoreError.check(mdb_env_set_mapsize(raw, configuration.mapByteCount), "mdb_env_set_mapsize")
            try StoreError.check(mdb_env_set_maxdbs(raw, MDB_dbi(tableCount)), "mdb_env_set_maxdbs")
            let readersMax = UInt32(configuration.readersMax)
            try StoreError.check(mdb_env_set_maxreaders(raw, readersMax), "mdb_env_set_maxreaders")
            // Never NOSYNC (corrupts on power failure) and never WRITEMAP (SIGBUS on a full disk).
            var flags = UInt32(MDB_NOTLS)
            if configuration.durability == .relaxed { flags |= UInt32(MDB_NOMETASYNC) }
            // Without MDB_NOLOCK, LMDB makes lock.mdb. The lock on the directory keeps every writer away.
            if configuration.isReadOnly { flags |= UInt32(MDB_RDONLY) | UInt32(MDB_NOLOCK) }
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
}

// MARK: - Ending

extension Environment {
    /// Runs `body` with the environment kept open.
    func whileOpen<Result>(_ body: (OpaquePointer) throws(StoreError) -> Result) throws(StoreError) -> Result {
        try uses.begin()
        defer { uses.end() }
        do throws(StoreError) {
            return try body(raw)
        } catch {
            if error == .fatal(code: MDB_PANIC) { uses.report(error) }
            throw error
        }
    }

    /// Waits for reads and `whileOpen` to end, refuses new ones, frees the environment and the directory's lock. The
    /// writer must have ended. Later calls do nothing.
    func close() {
        guard uses.close() else { return }
        witness.withLock { $0.take() }?.close()
        store_fault_forget()
        mdb_env_close(raw)
        lock.release()
    }
}
