import Base
import Glibc
import Synchronization

/// What a process does with a data directory, and so which files it may make there.
public enum DirectoryUse: Sendable {
    /// It makes no file: another user's server could not open the files that it makes.
    case reading
    /// It changes the store that is there. It may make the files beside `data.mdb`.
    case changing
    /// It changes the store, and makes it if there is none. It may make the directory and every file.
    case making
}

/// The right to use a data directory, by flock(2): LMDB 0.9 does not refuse a second open, not even in one process.
///
/// Three things are locked. The file `lock` is the one that older servers look at; where it is missing, none of them
/// runs. The directory itself cannot be deleted and made again unnoticed, as `lock` can. The data file, if there is
/// one, is locked because it may have a name in another directory as well.
public final class DirectoryLock: Sendable {
    public let directory: String
    private let files: Mutex<[Int32]>

    /// Throws `.inUse` if another process, or this one, has locked the directory; `.missing` if there is no directory.
    public init(_ directory: String, for use: DirectoryUse) throws(StoreError) {
        if case .making = use, mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StoreError(code: errno, operation: "create the directory")
        }
        self.directory = directory
        self.files = Mutex([])
        do throws(StoreError) {
            try lockFile(for: use)
            try lock(directory, O_RDONLY | O_DIRECTORY)
        } catch {
            release()
            throw error
        }
    }

    /// For a store in a directory that the caller has locked, and keeps locked.
    private init(keptByCallerOf directory: String) {
        self.directory = directory
        self.files = Mutex([])
    }

    /// A lock with which a store of the directory can be opened and closed, while this lock stays locked.
    public func lent() -> DirectoryLock { DirectoryLock(keptByCallerOf: directory) }

    /// Locks the data file, which exists.
    func lockDataFile() throws(StoreError) { try lock(DataFile.path(in: directory), O_RDONLY | O_NOFOLLOW) }

    private func lockFile(for use: DirectoryUse) throws(StoreError) {
        let path = directory + "/lock"
        guard case .reading = use else { return try lock(path, O_RDWR | O_CREAT | O_NOFOLLOW) }
        do throws(StoreError) {
            try lock(path, O_RDONLY | O_NOFOLLOW)
        } catch {
            // Without the file, the lock on the directory is enough.
            guard error == .missing else { throw error }
        }
    }

    private func lock(_ path: String, _ flags: Int32) throws(StoreError) {
        let file = open(path, flags | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            if errno == ENOENT { throw .missing }
            throw StoreError(code: errno, operation: "open the lock")
        }
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if code == EINTR { continue }
            close(file)
            throw code == EWOULDBLOCK ? .inUse : StoreError(code: code, operation: "flock")
        }
        files.withLock { $0.append(file) }
    }

    public func release() {
        let open = files.withLock { files in
            defer { files = [] }
            return files
        }
        for file in open { close(file) }
    }

    deinit { release() }
}

/// Makes new directory entries durable.
func syncDirectory(_ path: String) throws(StoreError) {
    do throws(FileError) {
        try PrivateFile.syncDirectory(path)
    } catch {
        throw StoreError(code: error.code, operation: "sync the directory")
    }
}
