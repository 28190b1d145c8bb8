import Base
import Glibc

/// A storage that keeps the record in a file that only its owner can read (mode 0600).
///
/// A save writes a new file beside the old one, syncs it and renames it over the old one, so that the file is always
/// whole. The folder must exist. The storage holds a lock on `<path>.lock` until the last copy of this value is
/// dropped. Other processes, and other values in this process, get the error `inUse` meanwhile and change nothing.
///
/// ```swift
/// var configuration = Auth.Configuration(channel: channel)
/// configuration.storage = FileStorage(path: "/var/lib/shop/user.json")
/// let auth = try Auth(configuration: configuration)
/// print(auth.currentUser?.uid ?? "nobody is signed in")
/// ```
public struct FileStorage: AuthStorage {
    /// The path of the file.
    public let path: String
    private let lock: FileLock

    /// Far above any record; a larger file is not ours.
    private static let byteCountMax = 1 << 20

    /// Names the file. Nothing is opened before the first use.
    public init(path: String) {
        self.path = path
        self.lock = FileLock(path: path + ".lock")
    }

    /// Reads the file. Throws `inUse`, `unreadable`, `exposed`, and `damaged` for a file that is larger than any
    /// record.
    public func load() throws(AuthStorageError) -> [UInt8]? {
        // If no lock can be made, nothing can be saved either, and reading alone loses no record.
        if case .taken = try lock.take() { removeLeftOvers() }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw failed(.unreadable, "open", path) }
        defer { close(descriptor) }
        try checkPrivate(descriptor)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failed(.unreadable, "read", path) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= Self.byteCountMax else {
                throw AuthStorageError(.damaged, "\(path) is larger than any record.")
            }
        }
    }

    /// Replaces the file. Throws `inUse`, `unwritable`.
    public func save(_ record: [UInt8]) throws(AuthStorageError) {
        try lock.take().orThrow()
        let (new, descriptor) = try createNew()
        do throws(AuthStorageError) {
            defer { close(descriptor) }
            try write(record, to: descriptor, new)
            guard fsync(descriptor) == 0 else { throw failed(.unwritable, "fsync", new) }
        } catch {
            unlink(new)
            throw error
        }
        guard rename(new, path) == 0 else {
            let error = failed(.unwritable, "rename", new)
            unlink(new)
            throw error
        }
        try syncFolder()
    }

    /// Removes the file. A file that another process uses is left alone.
    public func remove() throws(AuthStorageError) {
        do throws(AuthStorageError) {
            _ = try lock.take()
        } catch {
            if error.kind == .inUse { return }
            throw error
        }
        guard unlink(path) == 0 else {
            if errno == ENOENT { return }
            throw failed(.unwritable, "unlink", path)
        }
        try syncFolder()
    }

    /// Refuses a file that others can read or could have written: its user, and its tokens, may be those of somebody
    /// else.
    private func checkPrivate(_ descriptor: Int32) throws(AuthStorageError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failed(.unreadable, "fstat", path) }
        guard status.st_mode & S_IFMT == S_IFREG else { return }
        guard status.st_uid == geteuid() else {
            throw AuthStorageError(.exposed, "\(path) belongs to user \(status.st_uid), not to the one who runs this.")
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw AuthStorageError(
                .exposed, "\(path) has mode \(mode), so that others can use it; if none did, set it to 600.")
        }
    }

    private var newPrefix: String { path + ".new-" }

    /// Makes a file with a new name (mkstemp(3): mode 0600, O_EXCL).
    private func createNew() throws(AuthStorageError) -> (name: String, descriptor: Int32) {
        var template = [CChar]((newPrefix + "XXXXXX").utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw failed(.unwritable, "create", newPrefix) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return (String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self), descriptor)
    }

    /// Removes the files of saves that a crash cut short. The caller has the lock, so nobody saves now.
    private func removeLeftOvers() {
        var found = glob_t()
        defer { globfree(&found) }
        let pattern = newPrefix.reduce(into: "") { $0 += "\\\($1)" } + "??????"
        guard glob(pattern, 0, nil, &found) == 0 else { return }
        for index in 0..<Int(found.gl_pathc) {
            if let name = found.gl_pathv[index] { unlink(name) }
        }
    }

    private func write(_ bytes: [UInt8], to descriptor: Int32, _ name: String) throws(AuthStorageError) {
        do throws(FileError) {
            try PrivateFile.writeAll(bytes, to: descriptor, path: name)
        } catch {
            throw AuthStorageError(.unwritable, error)
        }
    }

    private func syncFolder() throws(AuthStorageError) {
        do throws(FileError) {
            try PrivateFile.syncDirectory(of: path)
        } catch {
            throw AuthStorageError(.unwritable, error)
        }
    }

    /// The error of the system call that has just failed.
    private func failed(_ kind: AuthStorageError.Kind, _ call: String, _ name: String) -> AuthStorageError {
        AuthStorageError(kind, FileError(path: name, call: call, code: errno))
    }
}

extension AuthStorageError {
    init(_ kind: Kind, _ error: FileError) {
        self.init(kind, "\(error.call) \(error.path): \(String(cString: strerror(error.code)))")
    }
}
