import Base
import Glibc

/// A file for a secret that is about to be made, readable by its owner only. The file is made first: a secret that can
/// be shown only once must not be made without a place for it. Owned by the command that made it.
struct NewFile: Sendable {
    let path: String
    private let descriptor: Int32

    /// Makes the file, not its folder. An existing file stays as it is.
    init(_ path: String) throws(CommandError) {
        try Self.checkAbsent(path)
        self.path = path
        self.descriptor = try File.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    }

    /// Checks for --dry-run that the file does not exist. Makes nothing.
    static func checkAbsent(_ path: String) throws(CommandError) {
        try File.checkName(path)
        guard !File.exists(path) else {
            throw .usage("\(path): exists already", hint: "a file is not overwritten with a new key: name another one")
        }
    }

    /// The result of `make`. If `make` fails, the empty file is removed.
    func kept<Answer>(for make: () async throws -> Answer) async throws -> Answer {
        do {
            return try await make()
        } catch {
            close(descriptor)
            unlink(path)
            throw error
        }
    }

    /// Writes `secret` to the file, on the disk. `advice` is for a secret that could not be kept.
    func finish(with secret: [UInt8], ifLost advice: String) throws(CommandError) {
        defer { close(descriptor) }
        do throws(CommandError) {
            try File.write(secret, to: descriptor, name: path)
            guard fsync(descriptor) == 0 || errno == EINVAL else { throw CommandError.system(path) }
        } catch {
            throw CommandError(error.message, hint: advice)
        }
    }
}
