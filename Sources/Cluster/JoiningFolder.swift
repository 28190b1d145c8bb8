import Base
import Glibc

/// The folder `join.new` in a data directory, in which the store of a joining node is made ready before it takes its
/// place.
///
/// The folder exists from the first step to the last. So a crash at any point leaves a directory that shows that the
/// joining has to begin again, or a directory that has joined.
struct JoiningFolder {
    let directory: String
    var path: String { directory + "/join.new" }

    static func isThere(in directory: String) -> Bool { access(directory + "/join.new", F_OK) == 0 }

    /// Makes the folder anew, without the files of an interrupted joining.
    func begin() throws(FileError) {
        clear()
        guard mkdir(path, 0o700) == 0 else { throw FileError(path: path, call: "mkdir", code: errno) }
        try PrivateFile.syncDirectory(directory)
    }

    /// Puts the store in its place. An earlier store is kept under the name that is returned.
    func takePlace() throws(FileError) -> String? {
        var kept: String?
        if access(directory + "/data.mdb", F_OK) == 0 {
            kept = try FreeName.keep(
                directory + "/data.mdb", as: "\(directory)/data.mdb.before-rejoin-\(time(nil))")
        }
        try Self.rename(path + "/witness", directory + "/witness")
        try Self.rename(path + "/data.mdb", directory + "/data.mdb")
        unlink(directory + "/lock.mdb")
        // The note was about the earlier store.
        unlink(directory + "/making-snapshot")
        try PrivateFile.syncDirectory(directory)
        clear()
        try PrivateFile.syncDirectory(directory)
        return kept
    }

    /// Deletes the folder. Does nothing if its name is now a symbolic link.
    func clear() {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return }
        defer { close(folder) }
        // The witness of a joining that ended between its two renames. Without it, the directory is empty.
        if access(directory + "/data.mdb", F_OK) != 0 { unlink(directory + "/witness") }
        for name in ["data.mdb", "lock.mdb", "lock", "witness", "witness.new"] { unlinkat(folder, name, 0) }
        rmdir(path)
    }

    private static func rename(_ old: String, _ new: String) throws(FileError) {
        guard Glibc.rename(old, new) == 0 else { throw FileError(path: old, call: "rename", code: errno) }
    }
}
