import Glibc

/// Lists directories. An error in the middle of a directory, which a file server may give, is not taken for its end.
public enum DirectoryNames {
    /// The names in the directory, without `.` and `..`, in no order. Blocks.
    public static func list(_ path: String) throws(FileError) -> [String] {
        guard let directory = opendir(path) else { throw FileError(path: path, call: "opendir", code: errno) }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            // readdir(3) gives nil at the end and after an error. Only errno tells them apart.
            errno = 0
            guard let entry = readdir(directory) else {
                let code = errno
                guard code == 0 else { throw FileError(path: path, call: "readdir", code: code) }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                // Not bytes: the directories are the server's own, and the kernel's.
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }
}
