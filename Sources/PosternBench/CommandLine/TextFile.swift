import Glibc

/// The files the tool reads and writes: a key, a population, thresholds, figures.
enum TextFile {
    /// `byteCountMax`: a longer file is refused.
    static func read(_ path: String, byteCountMax: Int = 1 << 30) throws(BenchError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw .system(.notReady, path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw .system(.notReady, path) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= byteCountMax else { throw BenchError(.notReady, "\(path): too long") }
        }
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Replaces the file in one step; only its owner can read it, because it may hold tokens. Writes directly to a
    /// device.
    static func write(_ bytes: [UInt8], to path: String) throws(BenchError) {
        let replaces = !isSpecial(path)
        let name = replaces ? path + ".new" : path
        let file = open(name, O_WRONLY | O_CLOEXEC | (replaces ? O_CREAT | O_TRUNC : 0), 0o600)
        guard file >= 0 else { throw .system(.failed, name) }
        defer { close(file) }
        do throws(BenchError) { try write(bytes, to: file, named: name) } catch {
            // A full disk gets the space back, and the old file stays.
            if replaces { unlink(name) }
            throw error
        }
        guard !replaces || rename(name, path) == 0 else { throw .system(.failed, path) }
    }

    private static func isSpecial(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }

    static func printOut(_ text: String) throws(BenchError) {
        try write([UInt8](text.utf8), to: STDOUT_FILENO, named: "stdout")
    }

    static func printError(_ text: String) {
        // There is nowhere left to report a failure to.
        try? write([UInt8](text.utf8), to: STDERR_FILENO, named: "stderr")
    }

    private static func write(_ bytes: [UInt8], to file: Int32, named name: String) throws(BenchError) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress! + offset, bytes.count - offset) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw .system(.failed, name) }
            offset += count
        }
    }
}
