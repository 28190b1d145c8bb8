import Base
import Glibc

/// Reads the files of TLS: certificates, keys and revocation lists.
public enum TLSFile {
    /// Reads the whole file. Throws if it is longer than `byteCountMax`, or if it is secret and everybody may read it.
    public static func read(_ path: String, byteCountMax: Int, isSecret: Bool) throws(TLSError) -> [UInt8] {
        func failure(_ call: String) -> TLSError { TLSError("\(path): \(call): \(String(cString: strerror(errno)))") }
        // Non-blocking, because a pipe that nobody writes to would block for ever.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw failure("open") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw failure("fstat") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw TLSError("\(path): must be a regular file") }
        guard !isSecret || status.st_mode & 0o007 == 0 else {
            throw TLSError("\(path): everybody can read it; run: chmod 600 \(path)")
        }
        do throws(FileError) {
            return try OpenFile.readAll(file, path: path, byteCountMax: byteCountMax)
        } catch {
            throw TLSError(error.code == EFBIG ? "\(path): is longer than \(byteCountMax) bytes" : "\(error)")
        }
    }
}
