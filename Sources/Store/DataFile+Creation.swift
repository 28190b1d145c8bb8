internal import CLMDB
import Glibc

extension DataFile {
    /// Makes the data file in a new store.
    ///
    /// LMDB would make the file under its own name and fill it afterwards: a crash in between leaves a file that no
    /// later start can tell from a truncated one.
    static func createIfMissing(_ configuration: StoreConfiguration) throws(StoreError) {
        let directory = configuration.directory
        if let _ = try DataFile(path: path(in: directory)) { return }
        // If there is a witness, there was a data file.
        guard configuration.createsIfMissing, access(directory + "/witness", F_OK) != 0 else { throw .missing }
        try create(in: directory, mapByteCount: configuration.mapByteCount)
        try syncDirectory(directory)
        // A process that may not write to the parent has not made the directory, and perhaps may not open the parent.
        if access(directory + "/..", W_OK) == 0 { try syncDirectory(directory + "/..") }
    }

    private static func create(in directory: String, mapByteCount: Int) throws(StoreError) {
        let temporary = directory + "/data.mdb.new"
        if unlink(temporary) != 0, errno != ENOENT { throw StoreError(code: errno, operation: "remove data.mdb.new") }
        let raw = try LMDB.makeEnvironment()
        defer { mdb_env_close(raw) }
        try StoreError.check(mdb_env_set_mapsize(raw, mapByteCount), "mdb_env_set_mapsize")
        let flags = UInt32(MDB_NOSUBDIR) | UInt32(MDB_NOLOCK)
        try StoreError.check(mdb_env_open(raw, temporary, flags, 0o600), "mdb_env_open")
        try StoreError.check(mdb_env_sync(raw, 1), "mdb_env_sync")
        guard rename(temporary, path(in: directory)) == 0 else {
            throw StoreError(code: errno, operation: "rename data.mdb.new")
        }
    }
}
