import Base
import Glibc

/// A file that could not be read or written: which call, and the system's reason.
struct FileError: Error, CustomStringConvertible {
    let path: String
    let call: String
    let code: Int32

    var description: String { "\(path): \(call): \(String(cString: strerror(code)))" }
}

/// The few files the server itself reads and writes: configuration, master key, first admin key.
enum Files {
    static func read(_ path: String, byteCountMax: Int) throws -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(path: path, call: "open", code: errno) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw FileError(path: path, call: "read", code: errno) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= byteCountMax else { throw FileError(path: path, call: "read", code: EFBIG) }
        }
    }

    /// Writes a new file that only its owner can read, and makes it and its name durable. Never overwrites.
    static func createPrivate(_ path: String, _ bytes: [UInt8]) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileError(path: path, call: "create", code: errno) }
        defer { close(file) }
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { write(file, $0.baseAddress! + offset, bytes.count - offset) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw FileError(path: path, call: "write", code: errno) }
            offset += count
        }
        guard fsync(file) == 0 else { throw FileError(path: path, call: "fsync", code: errno) }
        try syncDirectory(of: path)
    }

    /// The permission bits of a regular file of ours, or nil when it is not there.
    static func mode(of path: String) -> mode_t? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return status.st_mode
    }

    static func makeDirectory(_ path: String) throws {
        if mkdir(path, 0o700) != 0 && errno != EEXIST { throw FileError(path: path, call: "mkdir", code: errno) }
    }

    private static func syncDirectory(of path: String) throws {
        let end = path.lastIndex(of: "/")
        let directory = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(path: directory, call: "open", code: errno) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw FileError(path: directory, call: "fsync", code: errno) }
    }
}
