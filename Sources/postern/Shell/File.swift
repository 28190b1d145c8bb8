import Base
import Glibc

/// Reads and writes small files as a whole. An error is a `CommandError` that names the file.
enum File {
    static let byteCountMax = 16 * 1024 * 1024

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Refuses "-", which would be taken for the name of a file. A command for which it is standard input or output
    /// does not come here with it.
    static func checkName(_ path: String) throws(CommandError) {
        guard path != "-" else {
            throw .usage("- is neither standard input nor output here", hint: "name a file; ./- is one with that name")
        }
    }

    /// The path of the same file, whatever the working directory is later.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return String(cString: folder) + "/" + path
    }

    /// Commands open their files before they send anything: a wrong name is a mistake on the command line.
    static func open(_ path: String, _ flags: Int32 = O_RDONLY, mode: mode_t = 0) throws(CommandError) -> Int32 {
        try checkName(path)
        let descriptor = Glibc.open(path, flags | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw .usage("\(path): \(String(cString: strerror(errno)))") }
        return descriptor
    }

    static func read(_ path: String) throws(CommandError) -> [UInt8] {
        let descriptor = try open(path)
        defer { close(descriptor) }
        do throws(CommandError) {
            return try readAll(descriptor: descriptor, name: path)
        } catch {
            throw .usage(error.message)
        }
    }

    static func readAll(descriptor: Int32, name: String) throws(CommandError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let chunk = try readChunk(descriptor: descriptor, name: name) {
            bytes += chunk
            guard bytes.count <= byteCountMax else { throw CommandError("\(name): is above \(byteCountMax) bytes") }
        }
        return bytes
    }

    /// Nil at the end of the file. A signal ends the waiting for a pipe or a terminal.
    static func readChunk(descriptor: Int32, name: String) throws(CommandError) -> [UInt8]? {
        guard Interruption.waitForInput(descriptor) else {
            throw CommandError("\(name): interrupted", exitCode: .interrupted)
        }
        while true {
            var count = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initializedCount in
                count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                initializedCount = max(count, 0)
            }
            if count > 0 { return chunk }
            if count == 0 { return nil }
            if errno != EINTR { throw CommandError.system(name) }
        }
    }

    static func write(_ bytes: [UInt8], to descriptor: Int32, name: String) throws(CommandError) {
        do {
            try PrivateFile.writeAll(bytes, to: descriptor, path: name)
        } catch {
            throw CommandError("\(name): \(String(cString: strerror(error.code)))")
        }
    }

    /// Replaces the file as a whole, readable by its owner only; makes its folder if need be.
    static func replace(_ path: String, with bytes: [UInt8]) throws(CommandError) {
        try checkName(path)
        makeFolder(of: path)
        let temporary = "\(path).\(getpid())"
        let descriptor = try open(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        defer { close(descriptor) }
        do throws(CommandError) {
            try write(bytes, to: descriptor, name: temporary)
            guard rename(temporary, path) == 0 else { throw CommandError.system(path) }
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Gives a finished file its name, which no file may have yet.
    ///
    /// `link` is link(2). Where a file cannot have two names, as on FAT and on some shares, an empty file takes the
    /// name first, and the finished file then replaces it.
    static func giveName(
        _ path: String, to unfinished: String, link: (String, String) -> Int32 = { Glibc.link($0, $1) }
    ) throws(CommandError) {
        if link(unfinished, path) == 0 {
            unlink(unfinished)
            return
        }
        guard [EPERM, EOPNOTSUPP, ENOSYS].contains(errno) else { throw CommandError.system(path) }
        close(try open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600))
        guard rename(unfinished, path) == 0 else {
            let error = CommandError.system(path)
            unlink(path)
            throw error
        }
    }

    /// Makes the name of a complete file durable: without this, a machine that stops may lose the whole file.
    ///
    /// Some file systems cannot sync a folder (EINVAL), and a folder may be one in which nobody reads: then nothing is
    /// done.
    static func syncName(of path: String) throws(CommandError) {
        do throws(FileError) {
            try PrivateFile.syncDirectory(of: path)
        } catch {
            guard error.call == "fsync", ![EINVAL, EOPNOTSUPP, ENOSYS].contains(error.code) else { return }
            throw CommandError(
                "\(path): complete, but its name may not be on the disk: \(String(cString: strerror(error.code)))")
        }
    }

    private static func makeFolder(of path: String) {
        var parents: [String] = []
        var rest = path[...]
        while let slash = rest.lastIndex(of: "/"), slash > rest.startIndex {
            rest = rest[..<slash]
            parents.append(String(rest))
        }
        // If a folder cannot be made, opening the file fails.
        for parent in parents.reversed() { mkdir(parent, 0o700) }
    }
}
