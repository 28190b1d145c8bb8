import Glibc

/// Writes files that only their owner can read. A crash at any moment leaves the new file, the old file, or no file;
/// never a part of one.
///
/// The bytes go to `<path>.new`, which is synced and then renamed. One process at a time may write a path: a `.new`
/// that a crash left is replaced.
public enum PrivateFile {
    /// Replaces the file, or makes it.
    public static func replace(_ path: String, with bytes: [UInt8]) throws(FileError) {
        let temporary = path + ".new"
        close(try write(bytes, to: temporary))
        guard rename(temporary, path) == 0 else { throw FileError(path: path, call: "rename", code: errno) }
        try syncDirectory(of: path)
    }

    /// Makes the file. Throws EEXIST if there is one.
    public static func create(_ path: String, _ bytes: [UInt8]) throws(FileError) {
        let temporary = path + ".new"
        let file = try write(bytes, to: temporary)
        defer { close(file) }
        guard link(temporary, path) == 0 else { throw FileError(path: path, call: "link", code: errno) }
        // Another process that made the same file at the same moment may have exchanged the temporary one.
        var (mine, named) = (stat(), stat())
        guard fstat(file, &mine) == 0, lstat(path, &named) == 0, mine.st_ino == named.st_ino else {
            throw FileError(path: path, call: "link", code: EBUSY)
        }
        unlink(temporary)
        try syncDirectory(of: path)
    }

    /// Removes the temporary file that a crash in `create` left: another name of the file itself. Any other file of
    /// that name stays, because it may be somebody's next key.
    public static func removeLeftover(of path: String) {
        var (file, leftover) = (stat(), stat())
        guard lstat(path, &file) == 0, lstat(path + ".new", &leftover) == 0 else { return }
        if file.st_dev == leftover.st_dev, file.st_ino == leftover.st_ino { unlink(path + ".new") }
    }

    /// Makes the names in the directory of `path` durable.
    public static func syncDirectory(of path: String) throws(FileError) {
        // Not bytes: a path of our own making.
        let end = path.lastIndex(of: "/")
        try syncDirectory(end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".")
    }

    /// Makes the names in `directory` durable: a rename is on the disk when its directory is (fsync(2), NOTES).
    public static func syncDirectory(_ directory: String) throws(FileError) {
        let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(path: directory, call: "open", code: errno) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw FileError(path: directory, call: "fsync", code: errno) }
    }

    /// Writes all bytes to an open file. `path` is its name in an error.
    public static func writeAll(_ bytes: [UInt8], to file: Int32, path: String) throws(FileError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw FileError(path: path, call: "write", code: errno) }
            rest = rest.dropFirst(count)
        }
    }

    /// The open file, written and synced.
    private static func write(_ bytes: [UInt8], to path: String) throws(FileError) -> Int32 {
        if unlink(path) != 0, errno != ENOENT { throw FileError(path: path, call: "unlink", code: errno) }
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw FileError(path: path, call: "create", code: errno) }
        do {
            try writeAll(bytes, to: file, path: path)
        } catch {
            close(file)
            throw error
        }
        guard fsync(file) == 0 else {
            let code = errno
            close(file)
            throw FileError(path: path, call: "fsync", code: code)
        }
        return file
    }
}
