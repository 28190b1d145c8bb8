import Base
import Glibc

/// A file for a secret that is about to be made, readable by its owner only. The file is opened before the secret is
/// made, because a secret that can be shown only once must have a place. It gets its name when the secret is in it and
/// on the disk, so that nobody takes an empty file for a key. Owned by the command that made it.
///
/// Before that the file has no name (O_TMPFILE, open(2)) and is gone with the process, whatever ends the process. Some
/// file systems have no such files. There the file has its spare name first, and only a process that is killed leaves
/// that file behind.
struct NewFile: Sendable {
    let path: String
    /// A name beside `path` that no other command uses.
    private let spare: String
    private let isNameless: Bool
    private let descriptor: Int32

    /// Makes the file, not its folder. An existing file stays as it is. `canBeNameless`: false for a test of the file
    /// systems that have no nameless files.
    init(_ path: String, canBeNameless: Bool = true) throws(CommandError) {
        try Self.checkAbsent(path)
        self.path = path
        spare = "\(path).\(String(UInt64.random(in: .min ... .max), radix: 16))"
        if canBeNameless, let nameless = Self.openNameless(beside: path) {
            (descriptor, isNameless) = (nameless, true)
            return
        }
        descriptor = open(spare, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        isNameless = false
        guard descriptor >= 0 else { throw .usage("\(path): \(String(cString: strerror(errno)))") }
    }

    /// Checks that the file does not exist, also for --dry-run. Makes nothing.
    static func checkAbsent(_ path: String) throws(CommandError) {
        try File.checkName(path)
        var status = stat()
        // A link that leads nowhere takes the name, too.
        guard lstat(path, &status) == 0 else { return }
        let isEmptyFile = status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
        throw .usage(
            "\(path): exists already",
            hint: isEmptyFile
                ? "it is empty and holds no key: remove it, or name another file"
                : "a file is not overwritten with a new key: name another one")
    }

    /// The result of `make`. If `make` fails, no file is left.
    func kept<Answer>(for make: () async throws -> Answer) async throws -> Answer {
        do {
            return try await make()
        } catch {
            close(descriptor)
            removeUnfinished()
            throw error
        }
    }

    /// Writes `secret` to the file, on the disk, and gives the file its name. `advice` is for a secret that could not
    /// be kept. If another command has taken the name meanwhile, the secret is kept beside that file, and the error
    /// says where.
    func finish(with secret: [UInt8], ifLost advice: String) throws(CommandError) {
        defer { close(descriptor) }
        do throws(CommandError) {
            try File.write(secret, to: descriptor, name: path)
            guard fsync(descriptor) == 0 || errno == EINVAL else { throw CommandError.system(path) }
        } catch {
            removeUnfinished()
            throw CommandError(error.message, hint: advice)
        }
        do throws(CommandError) {
            if isNameless { try link(to: path) } else { try File.giveName(path, to: spare) }
        } catch {
            let isBeside = !isNameless || (try? link(to: spare)) != nil
            throw CommandError(error.message, hint: isBeside ? "the new secret is in \(spare)" : advice)
        }
        // Some file systems cannot do this. The secret itself is on the disk.
        try? PrivateFile.syncDirectory(of: path)
    }

    private func removeUnfinished() {
        if !isNameless { unlink(spare) }
    }

    // Files without a name

    /// Nil: the file system has no such files, or there is no way to name one later.
    private static func openNameless(beside path: String) -> Int32? {
        let end = path.lastIndex(of: "/")
        let folder = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(folder, nameless | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        guard File.exists(handle(of: descriptor)) else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// O_TMPFILE of fcntl.h.
    private static let nameless = 0o20_000_000 | O_DIRECTORY

    /// The path by which an open file is given a name (open(2), O_TMPFILE). It needs /proc.
    private static func handle(of descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

    private func link(to name: String) throws(CommandError) {
        guard linkat(AT_FDCWD, Self.handle(of: descriptor), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 else {
            throw CommandError.system(name)
        }
    }
}
