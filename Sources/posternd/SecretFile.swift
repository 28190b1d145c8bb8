import Base
import Glibc

/// A file with a secret in one line, which others must not be able to read.
///
/// The path may be a link: in Kubernetes every file of a mounted secret is one. The file that was opened counts.
enum SecretFile {
    /// The line without its end.
    static func read(_ path: String, byteCountMax: Int) throws -> [UInt8] {
        // Non-blocking, because a pipe that nobody writes to would block for ever.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { throw ConfigurationError(description: "\(path): there is no such file") }
            throw FileError(path: path, call: "open", code: errno)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw FileError(path: path, call: "fstat", code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw ConfigurationError(description: "\(path): must be a regular file, or a link to one")
        }
        // A file of root's may be readable by its group: a server gets a mounted secret as a member of the group,
        // because it cannot own the file. PostgreSQL has the same rule for its TLS key.
        let isOfRoot = status.st_uid == 0 && geteuid() != 0
        guard status.st_mode & (isOfRoot ? 0o037 : 0o077) == 0 else {
            throw ConfigurationError(
                description: "\(path): others can read it; run: chmod \(isOfRoot ? "640" : "600") \(path)")
        }
        var bytes = try OpenFile.readAll(file, path: path, byteCountMax: byteCountMax)
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        return bytes
    }
}
