import Base
import Glibc

/// A file for a secret that is about to be made, readable by its owner only. The place is taken first: a secret that
/// can be shown once must not be made and then have nowhere to go. Owned by the command that made it.
struct NewFile: Sendable {
    let path: String
    private let descriptor: Int32

    /// Makes the file, not its folder; what is there already stays as it is.
    init(_ path: String) throws(CommandError) {
        try Self.checkAbsent(path)
        self.path = path
        self.descriptor = try File.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    }

    /// For --dry-run: nothing is made.
    static func checkAbsent(_ path: String) throws(CommandError) {
        guard !File.exists(path) else {
            throw .usage("\(path): exists already", hint: "a file is not overwritten with a new key: name another one")
        }
    }

    /// What `make` answers; when it fails the empty file goes.
    func kept<Answer>(for make: () async throws -> Answer) async throws -> Answer {
        do {
            return try await make()
        } catch {
            close(descriptor)
            unlink(path)
            throw error
        }
    }

    /// Ends the file with `secret` in it, on the disk. `revocation` is what undoes the secret if it cannot be kept.
    func finish(with secret: [UInt8], orElse revocation: String) throws(CommandError) {
        defer { close(descriptor) }
        do throws(CommandError) {
            try File.write(secret, to: descriptor, name: path)
            guard fsync(descriptor) == 0 || errno == EINVAL else {
                throw CommandError("\(path): \(String(cString: strerror(errno)))")
            }
        } catch {
            throw CommandError(error.message, hint: "the key was made and is lost; undo it: \(revocation)")
        }
    }
}
