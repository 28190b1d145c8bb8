internal import Base
internal import CLMDB
import Glibc

/// The reason why the store refused or failed; the domain maps it to a status at the request boundary.
public enum StoreError: Error, Equatable, Sendable {
    /// Another process, or this one, has the directory open.
    case inUse
    /// The store was opened as an existing one, and there is no store in the directory.
    case missing
    /// The data file ends before a page that is in use.
    case truncated
    /// The file is not an LMDB file, or its structure is broken; `operation` found the damage.
    case damaged(operation: String)
    /// The store is not what its witness says it was: acknowledged writes are gone, or a backup was restored.
    case rolledBack(Rollback)
    /// The store was written by a newer version of the server.
    case newerSchema(found: UInt32, supported: UInt32)
    /// The store has rows in a table that this version does not know: a newer version wrote them.
    case unknownTable(String)
    /// A stored value does not carry its MAC, or does not decode. Never treat this as "not found".
    case corrupt(table: String)
    /// The key has no bytes, or more than `KeyWriter.byteCountMax`.
    case keySize
    /// The map, the disk or the transaction is full: this write wrote nothing, reads go on.
    case full
    /// The data file was deleted or replaced under the running server: writes are refused, reads go on for a while.
    case removed
    /// So many writes of the tenant are waiting already that it may take no further place (`Limits.writeQueueMax`).
    case overloaded
    /// The deadline of the call passed before its write was made: it was not made, and never will be.
    case overdue
    /// The deadline of the call passed before one of its later writes was made. Its earlier writes stay.
    case overdueAfterEarlierWrites
    /// More threads read at once than the environment has slots for.
    case readersFull
    /// The environment cannot be trusted any more: every later write is refused and the process should end.
    case fatal(code: Int32)
    /// The journal that this store shares with other nodes does not let it write, or read on.
    case journal(JournalTrouble)
    /// After `close()`.
    case closed
    /// Any other errno or LMDB code.
    case system(code: Int32, operation: String)
}

extension StoreError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .inUse: "the store is open elsewhere"
        case .missing: "there is no store in the directory"
        case .truncated: "the data file is truncated"
        case .damaged(let operation): "the data file is damaged (\(operation))"
        case .rolledBack(let rollback): "\(rollback)"
        case .newerSchema(let found, let supported): "schema \(found) is newer than the supported \(supported)"
        case .unknownTable(let name): "a newer server wrote to its table \(name), which this one does not know"
        case .corrupt(let table): "a record of table \(table) is corrupt"
        case .keySize: "the key has no bytes or too many"
        case .full: "the store is full"
        case .removed: "the data file was removed under the running server"
        case .overloaded: "too many writes are waiting"
        case .overdue: "the deadline passed before the write was made"
        case .overdueAfterEarlierWrites: "the deadline passed after a part of the writes was made"
        case .readersFull: "too many threads read at once"
        case .fatal(let code): "the store failed (\(Self.text(of: code)))"
        case .journal(let trouble): "\(trouble)"
        case .closed: "the store is closed"
        case .system(let code, let operation): "\(operation): \(Self.text(of: code))"
        }
    }

    private static func text(of code: Int32) -> String {
        mdb_strerror(code).map { String(cString: $0) } ?? "code \(code)"
    }
}

extension StoreError {
    /// Translates a code that LMDB returned, or an errno.
    init(code: Int32, operation: StaticString) {
        switch code {
        case MDB_MAP_FULL, MDB_TXN_FULL, ENOSPC, EDQUOT: self = .full
        // After a failed fdatasync(2) the kernel drops the dirty pages, so that a later sync would claim success.
        case MDB_PANIC, EIO: self = .fatal(code: code)
        case MDB_READERS_FULL: self = .readersFull
        case MDB_BAD_VALSIZE: self = .keySize
        case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_INVALID, MDB_VERSION_MISMATCH:
            self = .damaged(operation: operation.description)
        default: self = .system(code: code, operation: operation.description)
        }
    }

    /// Whether the data file is damaged.
    public var isDamage: Bool {
        switch self {
        case .truncated, .damaged, .corrupt: true
        default: false
        }
    }

    /// Whether the same write may succeed later: when there is room again, or the file system takes writes again.
    var mayPass: Bool {
        switch self {
        case .full, .system(code: EROFS, _): true
        default: false
        }
    }

    /// The same error, of a write of a call that made other writes before: it does not say that nothing was done.
    public var afterEarlierWrites: StoreError {
        switch self {
        case .journal(let trouble) where trouble.isNodeBehind: .journal(.outcomeUnknown)
        case .overdue: .overdueAfterEarlierWrites
        default: self
        }
    }

    var endsTheStore: Bool {
        switch self {
        case .fatal: true
        case .journal(let trouble): trouble.endsTheStore
        default: false
        }
    }

    init(_ error: FileError, operation: StaticString) { self.init(code: error.code, operation: operation) }

    static func check(_ code: Int32, _ operation: StaticString) throws(StoreError) {
        if code != MDB_SUCCESS { throw StoreError(code: code, operation: operation) }
    }
}
