public import Base
import Glibc

/// How many snapshots in a row a node began and did not outlive: the bytes of the file `making-snapshot` in its data
/// directory.
///
/// A damaged page of the data file ends the process that reads it (decision 0034), and a snapshot reads every page. So
/// a node that makes a snapshot each time one is due would end again and again.
public struct SnapshotTrials: Sendable {
    private static let countMax = 9
    private let path: String

    public init(in directory: String) { path = directory + "/making-snapshot" }

    /// A file that cannot be looked at counts as one.
    var count: Int {
        var file = stat()
        guard lstat(path, &file) == 0 else { return errno == ENOENT ? 0 : 1 }
        return min(max(1, file.st_size), Self.countMax)
    }

    /// Makes the number durable.
    func note(_ count: Int) throws(FileError) {
        guard count > 0 else { return try forget() }
        try PrivateFile.replace(
            path, with: [UInt8](repeating: UInt8(ascii: "1"), count: min(count, Self.countMax)))
    }

    /// Notes that the store is sound: somebody has read all of it.
    public func forget() throws(FileError) {
        if unlink(path) != 0 {
            if errno == ENOENT { return }
            throw FileError(path: path, call: "unlink", code: errno)
        }
        try PrivateFile.syncDirectory(of: path)
    }

    /// How long a node leaves snapshots to the others after so many that it did not outlive.
    static func pause(after count: Int, _ limits: JournalLimits) -> Duration {
        var pause = limits.snapshotPauseMin
        for _ in stride(from: 1, to: count, by: 1) where pause < limits.snapshotPauseMax { pause = pause * 5 }
        return min(pause, limits.snapshotPauseMax)
    }
}
