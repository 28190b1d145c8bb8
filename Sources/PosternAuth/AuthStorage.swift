import Base
import Synchronization

/// A place where an `Auth` keeps its signed-in user between runs of the application.
///
/// The storage holds one record of a few KiB. With the record anybody can act as the user, so nobody else may read it.
/// One `Auth` of one process uses a record at a time.
///
/// Methods are called by one thread at a time, which may block; it is never a thread of Swift's default pool. `load` is
/// called once, by the thread that makes the `Auth`.
///
/// ```swift
/// struct NoStorage: AuthStorage {
///     func load() throws(AuthStorageError) -> [UInt8]? { nil }
///     func save(_ record: [UInt8]) throws(AuthStorageError) {}
///     func remove() throws(AuthStorageError) {}
/// }
/// ```
public protocol AuthStorage: Sendable {
    /// Returns the record. Nil: nothing was saved. Throws when the record cannot be read.
    func load() throws(AuthStorageError) -> [UInt8]?
    /// Replaces the record. Returns when the new record will survive a crash; after an error the old record is there,
    /// whole.
    func save(_ record: [UInt8]) throws(AuthStorageError)
    /// Removes the record. Succeeds when there is none.
    func remove() throws(AuthStorageError)
}

/// An error of the storage.
///
/// ```swift
/// if auth.storageError?.kind == .inUse { print("Another process uses the file.") }
/// ```
public struct AuthStorageError: Error, Sendable, Equatable {
    /// The kinds of error. After each kind but `unwritable`, nobody is signed in at first, and the record is left alone
    /// until somebody signs in.
    public enum Kind: Sendable, Equatable {
        /// The storage cannot be read.
        case unreadable
        /// The contents are not a record.
        case damaged
        /// The record belongs to another tenant than the `Auth`.
        case otherTenant
        /// A newer version of this library has written the record.
        case newerVersion
        /// Another process uses the record. A user who signs in is kept until the application ends.
        case inUse
        /// Others could have read or written the record.
        case exposed
        /// The storage cannot be written. Signing in and out works until the application ends.
        case unwritable
    }

    /// The kind of error.
    public let kind: Kind
    /// A description of the error, with the path and the system's error if there are any. Never the contents.
    public let message: String

    /// Makes the error of a storage that the application has written.
    public init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}

extension AuthError {
    init(_ error: AuthStorageError) {
        self.init(.storageFailed, error.message)
    }
}

/// A storage that keeps the record as long as the object lives: for tests, and for applications that forget on purpose.
///
/// ```swift
/// var configuration = Auth.Configuration(channel: channel)
/// configuration.storage = InMemoryStorage()
/// let auth = try Auth(configuration: configuration)
/// print(auth.currentUser?.uid ?? "nobody is signed in")
/// ```
public final class InMemoryStorage: AuthStorage {
    private let record = Mutex<[UInt8]?>(nil)

    /// Creates an empty storage.
    public init() {}

    /// Returns the record. Nil: nothing was saved.
    public func load() -> [UInt8]? { record.withLock { $0 } }
    /// Replaces the record.
    public func save(_ record: [UInt8]) { self.record.withLock { $0 = record } }
    /// Removes the record.
    public func remove() { record.withLock { $0 = nil } }
}
