import Base
import Glibc
import Synchronization

/// The lock on a storage file (flock(2)): it decides which process, and which storage in the process, uses the file. It
/// ends with the process.
final class FileLock: Sendable {
    enum Outcome {
        case taken
        case hadAlready
        /// The lock's file cannot be made: the folder is missing or cannot be written.
        case impossible(AuthStorageError)
    }

    private let path: String
    /// Open while the lock is held.
    private let descriptor = Mutex<Int32?>(nil)

    init(path: String) { self.path = path }

    deinit {
        if let descriptor = descriptor.withLock({ $0 }) { close(descriptor) }
    }

    /// Takes the lock without waiting. Throws `inUse` while another storage or process has it.
    func take() throws(AuthStorageError) -> Outcome {
        let outcome = descriptor.withLock { held -> Result<Outcome, AuthStorageError> in
            if held != nil { return .success(.hadAlready) }
            let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard opened >= 0 else {
                let error = FileError(path: path, call: "create", code: errno)
                return .success(.impossible(AuthStorageError(.unwritable, error)))
            }
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
                close(opened)
                return .failure(
                    AuthStorageError(.inUse, "Another process, or another Auth of this one, has \(path) locked."))
            }
            held = opened
            return .success(.taken)
        }
        return try outcome.get()
    }
}

extension FileLock.Outcome {
    func orThrow() throws(AuthStorageError) {
        if case .impossible(let error) = self { throw error }
    }
}
