import Base
import Glibc

/// A file that gets its name when it is complete, readable by its owner only. Owned by the command that makes it.
///
/// Before that the file has no name (O_TMPFILE, open(2)) and is gone with the process, whatever ends the process. Some
/// file systems have no such files. There the file has its spare name first, and only a process that is killed leaves
/// that file behind. Each command has a spare name of its own, so no command removes what another one still writes.
struct UnfinishedFile: Sendable {
    /// The name that the file gets.
    let path: String
    /// A name beside `path` that no other command uses.
    let spare: String
    let descriptor: Int32
    private let isNameless: Bool

    /// Makes the file, not its folder. `canBeNameless`: false for a test of the file systems that have no nameless
    /// files.
    init(_ path: String, canBeNameless: Bool = true) throws(CommandError) {
        try File.checkName(path)
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

    /// Gives the file its name, which no file may have yet.
    func giveName() throws(CommandError) {
        if isNameless { try link(to: path) } else { try File.giveName(path, to: spare) }
    }

    /// Leaves the file under its spare name. False: the file is lost.
    func keepBeside() -> Bool { !isNameless || (try? link(to: spare)) != nil }

    /// Removes the spare name. The caller closes the file.
    func remove() {
        if !isNameless { unlink(spare) }
    }

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

extension File {
    /// Makes a file that gets its name only when it is complete and on the disk. `content` writes it piece by piece. On
    /// return the name is on the disk, too. `canBeNameless`: as for `UnfinishedFile`.
    static func create<Value>(
        _ path: String, canBeNameless: Bool = true,
        _ content: (_ put: ([UInt8]) throws -> Void) async throws -> Value
    ) async throws -> Value {
        let file = try UnfinishedFile(path, canBeNameless: canBeNameless)
        defer { close(file.descriptor) }
        do {
            let value = try await content { try write($0, to: file.descriptor, name: path) }
            guard fsync(file.descriptor) == 0 else { throw CommandError.system(path) }
            try file.giveName()
            try syncName(of: path)
            return value
        } catch {
            file.remove()
            throw error
        }
    }
}
