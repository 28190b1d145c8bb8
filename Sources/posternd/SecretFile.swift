import Glibc

/// A file with a secret in one line, which others must not be able to read.
enum SecretFile {
    /// The line without its end.
    static func read(_ path: String, mode: mode_t? = nil, byteCountMax: Int) throws -> [UInt8] {
        guard let mode = mode ?? Files.mode(of: path) else {
            throw ConfigurationError(description: "\(path): there is no such file")
        }
        guard mode & S_IFMT == S_IFREG else {
            throw ConfigurationError(description: "\(path): must be a regular file, not a link or directory")
        }
        guard mode & 0o077 == 0 else {
            throw ConfigurationError(description: "\(path): others can read it; run: chmod 600 \(path)")
        }
        var bytes = try Files.read(path, byteCountMax: byteCountMax)
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        return bytes
    }
}
