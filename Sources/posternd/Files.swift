import Base
import Glibc

/// Reads the few files that the server itself needs (configuration, master key), and looks up the owner and the mode of
/// its files. `PrivateFile` writes files.
enum Files {
    static func read(_ path: String, byteCountMax: Int) throws -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(path: path, call: "open", code: errno) }
        defer { close(file) }
        return try OpenFile.readAll(file, path: path, byteCountMax: byteCountMax)
    }

    /// The type and permission bits of a file of ours, or nil if it does not exist.
    static func mode(of path: String) -> mode_t? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return status.st_mode
    }

    /// The number of the user whose file it is, or nil if there is none. A link counts as a file of its own.
    static func owner(of path: String) -> uid_t? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return status.st_uid
    }

    /// The number of the user whose directory it is, or nil if there is none. The path may be a link.
    static func owner(ofDirectory path: String) -> uid_t? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return status.st_uid
    }

    /// A time as strftime(3) writes it, in UTC.
    static func utc(_ seconds: time_t, _ format: String) -> String {
        var (seconds, parts) = (seconds, tm())
        var text = [CChar](repeating: 0, count: 64)
        guard gmtime_r(&seconds, &parts) != nil, strftime(&text, text.count, format, &parts) > 0 else {
            return "\(seconds)"
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
