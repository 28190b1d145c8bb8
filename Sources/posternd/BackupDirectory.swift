import Base
import Cluster
import Glibc
import Identity
import Store

/// The directory of scheduled backups, which keeps only the newest: `postern-000042-20261123T053000Z.backup`.
///
/// The number orders them. The time in the name is the machine's, and a clock that is set back must not make the newest
/// backup look like the oldest.
///
/// Several servers may have the same directory. The numbers are given to all their backups in one row. A server counts
/// and deletes only the backups of its own project and master key, which are those of its whole cluster.
struct BackupDirectory: Sendable {
    let path: String
    let keptCount: Int
    private let dataDirectory: String
    /// The time from one backup to the next.
    let period: Duration

    private static let prefix = "postern-"
    private static let suffix = ".backup"
    private static let digitCounts = 6...12
    /// The highest number of `digitCounts`, enough for a backup each second in 30,000 years. A longer one is made up.
    /// If somebody made up this number, all later backups get it, and the times in their names order them.
    private static let numberMax = 999_999_999_999

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
    func take(
        _ backup: Backup, of backups: Backups, while goesOn: () -> Bool
    ) throws -> (path: String, byteCount: Int) {
        // Proof: `entries` has no number above `numberMax`.
        let number = min((try entries().last?.number ?? 0) + 1, Self.numberMax)
        let temporary = "\(path)/\(unfinishedName(of: backups))"
        if unlink(temporary) != 0, errno != ENOENT { throw FileError(path: temporary, call: "unlink", code: errno) }
        do {
            let byteCount = try Self.write(backup, to: temporary, while: goesOn)
            let name = try giveName(to: temporary, from: number)
            try PrivateFile.syncDirectory(path)
            return (name, byteCount)
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Gives a complete backup its name, with the first number from `number` on that leads to a free name. A backup of
    /// another server that took the same number in the same second is not replaced. Throws EEXIST if it took the last
    /// number there is.
    private func giveName(to temporary: String, from number: Int) throws(FileError) -> String {
        var number = number
        while true {
            let name = "\(path)/\(Self.prefix)\(Self.padded(number))-\(Self.timeNow())\(Self.suffix)"
            let code = link(temporary, name) == 0 ? 0 : errno
            switch code {
            case 0:
                unlink(temporary)
                return name
            case EEXIST: break
            // The file system gives a file one name only.
            case EPERM, EOPNOTSUPP, ENOSYS:
                if try FreeName.move(temporary, to: name) { return name }
            default: throw FileError(path: temporary, call: "link", code: code)
            }
            guard number < Self.numberMax else { throw FileError(path: name, call: "link", code: EEXIST) }
            // Proof: the number is below `numberMax`.
            number += 1
        }
    }

    /// Deletes the oldest of the server's own backups, all but `keptCount`. Throws the first error after it has tried
    /// all.
    func removeOld(of backups: Backups) throws {
        var failure: FileError?
        for old in try entries(of: backups).dropLast(keptCount) {
            let name = "\(path)/\(old.name)"
            // Another node with the same directory may have been faster.
            guard unlink(name) != 0, errno != ENOENT else { continue }
            failure = failure ?? FileError(path: name, call: "unlink", code: errno)
        }
        if let failure { throw failure }
    }

    /// Each store has a name of its own for unfinished files, and in a cluster each node, so that servers that share a
    /// directory do not delete or mix each other's files. The name is the same at the next start, which deletes what a
    /// crash left.
    private func unfinishedName(of backups: Backups) -> String {
        let mark = ClusterNode.id(of: dataDirectory).map { Hex.encode($0) } ?? backups.fileMark
        return "unfinished-\(mark).new"
    }

    /// The age of the newest of the server's own backups; nil if there is none, or if it is from the future.
    func newestAge(of backups: Backups) throws -> Duration? {
        guard let newest = try entries(of: backups).last else { return nil }
        var status = stat()
        guard stat("\(path)/\(newest.name)", &status) == 0 else { return nil }
        let age = time(nil) - status.st_mtim.tv_sec
        return age >= 0 ? .seconds(Int64(age)) : nil
    }

    /// The backups of all servers, in the order of their numbers, and of their names where the numbers are the same.
    private func entries() throws -> [Entry] {
        try DirectoryNames.list(path)
            .compactMap { name in Self.number(in: name).map { Entry(number: $0, name: name) } }
            .sorted { ($0.number, $0.name) < ($1.number, $1.name) }
    }

    /// The server's own backups, and those of its cluster. A file that cannot be read may be another server's: it is
    /// left as it is.
    private func entries(of backups: Backups) throws -> [Entry] {
        try entries().filter { entry in
            guard let header = try? BackupFile.readHeader(of: "\(path)/\(entry.name)") else { return false }
            return backups.isOwn(header)
        }
    }

    static func number(in name: String) -> Int? {
        guard name.hasPrefix(prefix), name.hasSuffix(suffix) else { return nil }
        let digits = name.dropFirst(prefix.count).prefix { $0.isASCII && $0.isNumber }
        return digitCounts.contains(digits.count) ? Int(digits) : nil
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
