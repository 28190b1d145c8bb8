import Glibc
import Synchronization

/// Our own flock(2) on `<directory>/lock`: LMDB 0.9 does not refuse a second open, not even in one process.
final class DirectoryLock: Sendable {
    private let file: Mutex<Int32?>

    init(_ directory: String, createsIfMissing: Bool) throws(StoreError) {
        if createsIfMissing, mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StoreError(code: errno, operation: "create the directory")
        }
        let file = open(directory + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            if errno == ENOENT { throw .missing }
            throw StoreError(code: errno, operation: "open the lock")
        }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(file)
            throw code == EWOULDBLOCK ? .inUse : StoreError(code: code, operation: "flock")
        }
        self.file = Mutex(file)
    }

    func release() {
        if let file = file.withLock({ $0.take() }) { close(file) }
    }

    deinit { release() }
}

/// Makes new directory entries durable.
func syncDirectory(_ path: String) throws(StoreError) {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { throw StoreError(code: errno, operation: "open the directory") }
    defer { close(directory) }
    guard fsync(directory) == 0 else { throw StoreError(code: errno, operation: "fsync the directory") }
}
