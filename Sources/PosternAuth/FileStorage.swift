import Base
import Glibc

/// Keeps the record in a file that only its owner can read (mode 0600).
///
/// A save writes `<path>.new`, syncs it, and renames it over the old file: there is always a whole one. The folder must
/// exist.
public struct FileStorage: AuthStorage {
    public let path: String

    /// Far above any record; a larger file is not ours.
    private static let byteCountMax = 1 << 20

    public init(path: String) { self.path = path }

    public func load() throws(AuthStorageError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw failed(.unreadable, "open", path) }
        defer { close(descriptor) }
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

    public func save(_ record: [UInt8]) throws(AuthStorageError) {
        let new = path + ".new"
        // A left-over of a crash, perhaps with another mode.
        unlink(new)
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failed(.unwritable, "create", new) }
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

    public func remove() throws(AuthStorageError) {
        guard unlink(path) == 0 else {
            if errno == ENOENT { return }
            throw failed(.unwritable, "unlink", path)
        }
        try syncFolder()
    }

    private func write(_ bytes: [UInt8], to descriptor: Int32, _ name: String) throws(AuthStorageError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failed(.unwritable, "write", name) }
            rest = rest.dropFirst(count)
        }
    }

    /// A rename is on the disk when its folder is (fsync(2), NOTES).
    private func syncFolder() throws(AuthStorageError) {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failed(.unwritable, "open", folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failed(.unwritable, "fsync", folder) }
    }

    private func failed(_ kind: AuthStorageError.Kind, _ call: String, _ name: String) -> AuthStorageError {
        AuthStorageError(kind, "\(call) \(name): \(String(cString: strerror(errno)))")
    }
}
