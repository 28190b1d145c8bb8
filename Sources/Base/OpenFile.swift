import Glibc

/// Reads a file that is already open.
public enum OpenFile {
    /// The rest of the file. Throws EFBIG when there are more than `byteCountMax` bytes. `path` is for errors only.
    public static func readAll(_ descriptor: Int32, path: String, byteCountMax: Int) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw FileError(path: path, call: "read", code: errno) }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= byteCountMax else { throw FileError(path: path, call: "read", code: EFBIG) }
        }
    }
}
