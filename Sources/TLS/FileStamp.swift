import Glibc

/// Tells whether a file has changed, without reading it.
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
