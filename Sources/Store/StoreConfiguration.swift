public import Base
import Crypto

/// The moment at which an acknowledged write is safe.
public enum Durability: Sendable {
    /// An acknowledged write is on the disk.
    case synced
    /// An acknowledged write survives a failure of the process, not of the machine: a power failure loses up to
    /// `relaxedSyncInterval` of writes, but never the store's integrity (LMDB's NOMETASYNC).
    case relaxed
}

/// How to open a store. Paths are file-system paths; sizes are bytes.
public struct StoreConfiguration: Sendable {
    /// The directory of data.mdb, LMDB's lock.mdb and our own lock.
    public var directory: String
    /// False refuses to start on a missing store, so that a lost disk is not taken for a fresh start.
    public var createsIfMissing = true
    /// Address space, not memory or disk: the file grows up to this.
    public var mapByteCount = 64 << 30
    public var readersMax = 1_024
    public var durability = Durability.synced
    public var relaxedSyncInterval = Duration.milliseconds(100)
    /// The domain's tables, ids from `Schema.firstDomainTableID`; the store adds its own.
    public var tables: [TableDeclaration]
    public var limits = Limits()
    /// Called on the writer's thread when a copy of rows (`Store.copies`) could not be refreshed after a commit.
    public var onCopyFailure: @Sendable (_ copy: StaticString, any Error) -> Void = { _, _ in }
    /// Called on the writer's thread with each batch that changes something, before its commit. When it throws, the
    /// batch's writes fail with that error. Nil: the list is not made.
    public var beforeCommit: (@Sendable (StoreChanges) throws(StoreError) -> Void)?
    /// The journal that orders the writes of all nodes of a cluster; nil if this store is the only one. The store must
    /// have joined the cluster (`JournalPlace`).
    public var journal: (any JournalEngine)?
    /// Opens a cluster's store without its journal, to make it a store of its own again or to look at it. Other nodes
    /// never learn of the writes that are made then.
    public var leavesJournal = false
    /// For tests: each batch runs twice. The first run is rolled back, and the changes of this closure are committed
    /// before the second, as if another node had been first. This finds a body that acts on what its first run read.
    public var beforeRerun: (@Sendable (borrowing WriteTransaction) throws(StoreError) -> Void)?
    /// Steps that upgrade the domain's records.
    public var migrations: [Migration] = []
    /// Called on the writer's thread when the store begins to take fewer writes or the reason changes, and with nil
    /// when the trouble ends.
    public var onTrouble: @Sendable (StoreTrouble?) -> Void = { _ in }
    /// How long the callers that let their commit be put off (`Store.write`) have to wait for something else anyway. If
    /// no other caller waits, a commit is put off by at most this time, and at most 5 ms, so that more writes share it.
    /// Asked on the writer's thread.
    public var spareTime: @Sendable () -> Duration = { .zero }

    /// The lock on `directory`, if the caller took it already.
    public var lock: DirectoryLock?
    /// Opens a store that is older than its witness (`Store.rollback`): for the operator who decides that.
    public var acceptsRollback = false
    /// True for looking at a store without changing it: neither files nor missing tables are made.
    var isReadOnly = false
    var use: DirectoryUse { isReadOnly ? .reading : createsIfMissing ? .making : .changing }
    /// The lines that the process writes when a fault ends it; nil in a process that must keep its signal handlers.
    public var damage: DamageReport?
    public var random = RandomSource.system
    /// The server's time, which is compared with the clock of a journal's engine.
    public var clock = Clock.system
    /// The time that the store may keep as the highest it has seen; nil for none. Asked on the writer's thread, once a
    /// commit.
    public var timeMark: @Sendable () -> Timestamp? = { nil }

    public init(directory: String, tables: [TableDeclaration]) {
        self.directory = directory
        self.tables = tables
    }
}

/// The lines that the process writes to standard error when a fault ends it (`store_fault.h`). Each is the end of a
/// JSON object, from the member `level` on.
public struct DamageReport: Sendable {
    /// For a fault in the data file's mapping or in LMDB's code, which ends the process with `exitStatus`.
    public var lineOfStore: [UInt8]
    /// For any other fault, failed check of libc or trap, which ends the process by its signal.
    public var lineOfOthers: [UInt8]
    public var exitStatus: Int32 = 70

    public init(lineOfStore: [UInt8], lineOfOthers: [UInt8]) {
        self.lineOfStore = lineOfStore
        self.lineOfOthers = lineOfOthers
    }
}

/// A collision-resistant hash of 32 bytes over the concatenation of `pieces` (SHA-256), which chains events.
public typealias EventHash = @Sendable (_ pieces: [UnsafeRawBufferPointer]) -> [UInt8]
