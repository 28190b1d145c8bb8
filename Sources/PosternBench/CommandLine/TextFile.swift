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

    /// Replaces the file in one step; only its owner can read it, as it may hold tokens.
    static func write(_ bytes: [UInt8], to path: String) throws(BenchError) {
        let fresh = path + ".new"
        let file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw .system(.failed, fresh) }
        defer { close(file) }
        try write(bytes, to: file, named: fresh)
        guard rename(fresh, path) == 0 else { throw .system(.failed, path) }
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
