import Base
import Cluster
import Glibc
import Identity

/// The directory of scheduled backups, which keeps only the newest: `postern-000042-20261123T053000Z.backup`.
///
/// The number orders them. The time in the name is the machine's, and a clock that is set back must not make the newest
/// backup look like the oldest.
struct BackupDirectory: Sendable {
    let path: String
    let keptCount: Int
    private let dataDirectory: String
    /// The time from one backup to the next.
    let period: Duration

    private static let prefix = "postern-"
    private static let suffix = ".backup"

    /// Nil if no backups are wanted. A missing directory is noticed now, and not when a backup is needed.
    init?(_ configuration: Configuration) throws {
        path = configuration.backupDirectory
        guard !path.isEmpty else { return nil }
        guard access(path, W_OK | X_OK) == 0 else {
            let reason = FileError(path: path, call: "access", code: errno)
            throw ConfigurationError(description: "backup_directory: \(reason)")
        }
        keptCount = Int(configuration.backupKeep)
        dataDirectory = configuration.dataDirectory
        period = .seconds(configuration.backupEverySeconds)
    }

    struct Entry {
        let number: Int
        let name: String
    }

    /// Writes a backup to its end. An unfinished file never has the name of a backup.
    func take(_ backup: Backup, while goesOn: () -> Bool) throws -> (path: String, byteCount: Int) {
        // Proof: `entries` takes numbers of at most 18 digits.
        let number = (try entries().last?.number ?? 0) + 1
        let temporary = "\(path)/\(unfinishedName)"
        if unlink(temporary) != 0, errno != ENOENT { throw FileError(path: temporary, call: "unlink", code: errno) }
        let byteCount: Int
        do {
            byteCount = try Self.write(backup, to: temporary, while: goesOn)
        } catch {
            unlink(temporary)
            throw error
        }
        let name = "\(path)/\(Self.prefix)\(Self.padded(number))-\(Self.timeNow())\(Self.suffix)"
        guard rename(temporary, name) == 0 else { throw FileError(path: temporary, call: "rename", code: errno) }
        try PrivateFile.syncDirectory(path)
        return (name, byteCount)
    }

    /// Deletes the oldest backups, all but `keptCount`. Throws the first error after it has tried all.
    func removeOld() throws {
        var failure: FileError?
        for old in try entries().dropLast(keptCount) {
            let name = "\(path)/\(old.name)"
            // Another node with the same directory may have been faster.
            guard unlink(name) != 0, errno != ENOENT else { continue }
            failure = failure ?? FileError(path: name, call: "unlink", code: errno)
        }
        if let failure { throw failure }
    }

    /// Each node of a cluster has a name of its own for unfinished files, so that two nodes that share a directory do
    /// not delete or mix each other's files. The name is the same at the next start, which deletes what a crash left.
    private var unfinishedName: String {
        guard let id = ClusterNode.id(of: dataDirectory) else { return "unfinished.new" }
        return "unfinished-\(Hex.encode(id)).new"
    }

    /// The age of the newest backup; nil if there is none, or if it is from the future.
    func newestAge() throws -> Duration? {
        guard let newest = try entries().last else { return nil }
        var status = stat()
        guard stat("\(path)/\(newest.name)", &status) == 0 else { return nil }
        let age = time(nil) - status.st_mtim.tv_sec
        return age >= 0 ? .seconds(Int64(age)) : nil
    }

    /// The backups, in the order in which they were made.
    func entries() throws -> [Entry] {
        try DirectoryNames.list(path)
            .compactMap { name in Self.number(in: name).map { Entry(number: $0, name: name) } }
            .sorted { $0.number < $1.number }
    }

    static func number(in name: String) -> Int? {
        guard name.hasPrefix(prefix), name.hasSuffix(suffix) else { return nil }
        let digits = name.dropFirst(prefix.count).prefix { $0.isASCII && $0.isNumber }
        return (6...18).contains(digits.count) ? Int(digits) : nil
    }

    private static func write(_ backup: Backup, to path: String, while goesOn: () -> Bool) throws -> Int {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw FileError(path: path, call: "create", code: errno) }
        defer { close(file) }
        var byteCount = 0
        while let piece = try backup.nextBlocking() {
            guard goesOn() else { throw CancellationError() }
            try PrivateFile.writeAll(piece, to: file, path: path)
            byteCount += piece.count
        }
        guard fsync(file) == 0 else { throw FileError(path: path, call: "fsync", code: errno) }
        return byteCount
    }

    private static func padded(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.utf8.count)) + digits
    }

    /// As `20261123T053000Z`.
    private static func timeNow() -> String { Files.utc(time(nil), "%Y%m%dT%H%M%SZ") }
}
