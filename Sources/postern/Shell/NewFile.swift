import Base
import Glibc

/// A file for a secret that is about to be made, readable by its owner only. The file is opened before the secret is
/// made, because a secret that can be shown only once must have a place. It gets its name when the secret is in it and
/// on the disk, so that nobody takes an empty file for a key. Owned by the command that made it.
struct NewFile: Sendable {
    private let file: UnfinishedFile

    var path: String { file.path }

    /// Makes the file, not its folder. An existing file stays as it is. `canBeNameless`: as for `UnfinishedFile`.
    init(_ path: String, canBeNameless: Bool = true) throws(CommandError) {
        try Self.checkAbsent(path)
        file = try UnfinishedFile(path, canBeNameless: canBeNameless)
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
            close(file.descriptor)
            file.remove()
            throw error
        }
    }

    /// Writes `secret` to the file, on the disk, and gives the file its name. `advice` is for a secret that could not
    /// be kept. If another command has taken the name meanwhile, the secret is kept beside that file, and the error
    /// says where.
    func finish(with secret: [UInt8], ifLost advice: String) throws(CommandError) {
        defer { close(file.descriptor) }
        do throws(CommandError) {
            try File.write(secret, to: file.descriptor, name: path)
            guard fsync(file.descriptor) == 0 || errno == EINVAL else { throw CommandError.system(path) }
        } catch {
            file.remove()
            throw CommandError(error.message, hint: advice)
        }
        do throws(CommandError) {
            try file.giveName()
        } catch {
            throw CommandError(
                error.message, hint: file.keepBeside() ? "the new secret is in \(file.spare)" : advice)
        }
        // Some file systems cannot do this. The secret itself is on the disk.
        try? PrivateFile.syncDirectory(of: path)
    }
}
