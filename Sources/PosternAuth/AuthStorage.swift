import Synchronization

/// Where an `Auth` keeps its signed-in user between runs of the application: one record, a few KiB, which grants what
/// the user may do.
///
/// Called from one thread at a time that may block, never from the default pool; `load` once, when `Auth` is made, on
/// the thread of whoever makes it. A record belongs to one `Auth` of one process at a time.
public protocol AuthStorage: Sendable {
    /// Nil: nothing was saved. Throws when what is there cannot be read.
    func load() throws(AuthStorageError) -> [UInt8]?
    /// Returns when the record will survive a crash; on an error the one of before is still there, whole.
    func save(_ record: [UInt8]) throws(AuthStorageError)
    /// Nothing to remove is no error.
    func remove() throws(AuthStorageError)
}

/// What is wrong with the storage.
public struct AuthStorageError: Error, Sendable, Equatable {
    public enum Kind: Sendable, Equatable {
        case unreadable
        /// Read, but no record. Nobody is signed in; it is left alone until somebody signs in.
        case damaged
        /// The record of another tenant than the `Auth` is for. As `damaged`.
        case otherTenant
        /// Of a newer version of this library. As `damaged`.
        case newerVersion
        /// Another process has it. As `damaged`; a user who signs in is kept until the application ends.
        case inUse
        /// Others could have read it, or written it. As `damaged`.
        case exposed
        /// Signing in and out works all the same, until the application ends.
        case unwritable
    }

    public let kind: Kind
    /// What happened, with the path and the system's error where there are any; never the contents.
    public let message: String

    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}

extension AuthError {
    init(_ error: AuthStorageError) {
        self.init(.keychainError, reason: "STORAGE_FAILED", error.message)
    }
}

/// Keeps the record as long as the object lives: for tests, and for applications that forget on purpose.
public final class InMemoryStorage: AuthStorage {
    private let record = Mutex<[UInt8]?>(nil)

    public init() {}

    public func load() -> [UInt8]? { record.withLock { $0 } }
    public func save(_ record: [UInt8]) { self.record.withLock { $0 = record } }
    public func remove() { record.withLock { $0 = nil } }
}
