import Base
import Glibc
import Store

/// The folder beside a backup into which the backup is unpacked to be checked: `FILE.check.` and six characters.
///
/// The name cannot be predicted, because the backup may be in a directory where others write. A check that is killed
/// leaves its folder, with a whole store. The folder is locked while it is in use, so that the next check of the same
/// backup finds and removes what earlier ones left.
struct CheckFolder {
    let path: String
    let lock: DirectoryLock

    private static let randomCount = 6
    private static let tryCountMax = 10

    init(beside backup: String) throws {
        guard access(backup, R_OK) == 0 else { throw FileError(path: backup, call: "open", code: errno) }
        Self.removeLeftovers(of: backup)
        (path, lock) = try Self.makeLocked(beside: backup)
    }

    func remove() {
        UnpackedStore.remove(path)
        lock.release()
    }

    private static func makeLocked(beside backup: String) throws -> (path: String, lock: DirectoryLock) {
        for _ in 0..<tryCountMax {
            let path = try make(beside: backup)
            // Another check may take the folder for a leftover before it is locked here.
            guard let lock = try? DirectoryLock(path, for: .reading) else { continue }
            if Files.mode(of: path) != nil { return (path, lock) }
            lock.release()
        }
        throw ConfigurationError(description: "\(backup).check: no folder could be made and kept")
    }

    private static func make(beside backup: String) throws -> String {
        let template = "\(backup).check." + String(repeating: "X", count: randomCount)
        var name = Array(template.utf8CString)
        guard mkdtemp(&name) != nil else { throw FileError(path: "\(backup).check", call: "mkdtemp", code: errno) }
        return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Removes the folders of this user that no check has locked. A folder that cannot be removed stays.
    private static func removeLeftovers(of backup: String) {
        let end = backup.lastIndex(of: "/")
        let directory = end.map { $0 == backup.startIndex ? "/" : String(backup[..<$0]) } ?? "."
        let prefix = (end.map { String(backup[backup.index(after: $0)...]) } ?? backup) + ".check."
        for name in (try? DirectoryNames.list(directory)) ?? [] {
            guard name.hasPrefix(prefix), name.utf8.count == prefix.utf8.count + randomCount else { continue }
            let path = "\(directory)/\(name)"
            guard Files.owner(of: path) == geteuid(), let lock = try? DirectoryLock(path, for: .reading) else {
                continue
            }
            UnpackedStore.remove(path)
            lock.release()
        }
    }
}

/// A store that was unpacked from a backup, in a folder of its own.
enum UnpackedStore {
    /// Removes the folder. Deletes nothing if the folder's name is now a symbolic link.
    static func remove(_ folder: String) {
        let file = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        for name in ["data.mdb", "lock.mdb", "lock", "witness", "witness.new"] { unlinkat(file, name, 0) }
        rmdir(folder)
    }
}
