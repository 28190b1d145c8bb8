import CThread
import Glibc

/// Renames files without replacing another file.
public enum FreeName {
    private static let namesMax = 1_000

    /// Renames the file. False if the name is taken.
    ///
    /// Some file systems, and kernels before 3.15, can only rename and replace. There, a file that gets the name at the
    /// same moment is replaced.
    public static func move(_ path: String, to name: String) throws(FileError) -> Bool {
        guard file_move_to_free_name(path, name) != 0 else { return true }
        var code = errno
        if code == EINVAL || code == ENOSYS {
            var status = stat()
            if lstat(name, &status) == 0 { return false }
            if rename(path, name) == 0 { return true }
            code = errno
        }
        guard code == EEXIST else { throw FileError(path: path, call: "rename", code: code) }
        return false
    }

    /// Keeps a file that another file is about to replace: renames it to `name`, or to the first of `name-2`,
    /// `name-3`, … that is free, and returns its new name.
    public static func keep(_ path: String, as name: String) throws(FileError) -> String {
        for attempt in 1...namesMax {
            let candidate = attempt == 1 ? name : "\(name)-\(attempt)"
            if try move(path, to: candidate) { return candidate }
        }
        throw FileError(path: name, call: "rename", code: EEXIST)
    }
}
