import Glibc

/// Reads the files that TLS is made of.
public enum TLSFile {
    /// The whole file. Throws when it is longer than `byteCountMax`, or when it is secret and everybody may read it.
    public static func read(_ path: String, byteCountMax: Int, isSecret: Bool) throws(TLSError) -> [UInt8] {
        func failure(_ call: String) -> TLSError { TLSError("\(path): \(call): \(String(cString: strerror(errno)))") }
        // A pipe that nobody writes to would keep us for ever.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw failure("open") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw failure("fstat") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw TLSError("\(path): must be a regular file") }
        guard !isSecret || status.st_mode & 0o007 == 0 else {
            throw TLSError("\(path): everybody can read it; run: chmod 600 \(path)")
        }
        var bytes = [UInt8](repeating: 0, count: byteCountMax + 1)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes {
                Glibc.read(file, $0.baseAddress.map { $0 + count }, $0.count - count)
            }
            if got < 0 && errno == EINTR { continue }
            guard got >= 0 else { throw failure("read") }
            if got == 0 { break }
            count += got
        }
        guard count <= byteCountMax else { throw TLSError("\(path): is longer than \(byteCountMax) bytes") }
        return Array(bytes[..<count])
    }
}

/// What tells whether a file is another than before, without reading it.
public struct FileStamp: Sendable, Equatable {
    private let numbers: [Int64]

    /// Nil for a file that is not there. A link is followed: tools that renew certificates exchange links.
    public init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        numbers = [
            Int64(truncatingIfNeeded: status.st_dev), Int64(truncatingIfNeeded: status.st_ino),
            Int64(truncatingIfNeeded: status.st_size), Int64(truncatingIfNeeded: status.st_mtim.tv_sec),
            Int64(truncatingIfNeeded: status.st_mtim.tv_nsec), Int64(truncatingIfNeeded: status.st_ctim.tv_sec),
            Int64(truncatingIfNeeded: status.st_ctim.tv_nsec),
        ]
    }
}
