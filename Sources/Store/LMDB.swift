internal import CLMDB

/// LMDB's functions that give their result through a pointer.
enum LMDB {
    /// LMDB's own table of free pages.
    static let freePages = MDB_dbi(0)

    /// A new environment, which is not open yet. The caller closes it with mdb_env_close.
    static func makeEnvironment() throws(StoreError) -> OpaquePointer {
        var made: OpaquePointer?
        try StoreError.check(mdb_env_create(&made), "mdb_env_create")
        // Proof: LMDB sets it whenever it returns MDB_SUCCESS.
        guard let environment = made else { preconditionFailure("mdb_env_create made nothing") }
        return environment
    }

    /// A new transaction, which the caller commits or aborts.
    static func beginTransaction(
        in environment: OpaquePointer, isReadOnly: Bool = false
    ) throws(StoreError) -> OpaquePointer {
        var made: OpaquePointer?
        let flags = isReadOnly ? UInt32(MDB_RDONLY) : 0
        try StoreError.check(mdb_txn_begin(environment, nil, flags, &made), "mdb_txn_begin")
        // Proof: LMDB sets it whenever it returns MDB_SUCCESS.
        guard let transaction = made else { preconditionFailure("mdb_txn_begin made nothing") }
        return transaction
    }

    /// The length of a page of an open environment's file.
    static func pageByteCount(in environment: OpaquePointer) -> Int {
        var status = MDB_stat()
        // Fails only for want of arguments; then no value is long enough for pieces.
        guard mdb_env_stat(environment, &status) == MDB_SUCCESS else { return Int(Int32.max) }
        return Int(status.ms_psize)
    }

    /// How many pages the tables take together.
    static func countPages(
        of tables: [MDB_dbi], in transaction: OpaquePointer
    ) throws(StoreError) -> Int {
        var count = 0
        for table in tables {
            var status = MDB_stat()
            try StoreError.check(mdb_stat(transaction, table, &status), "mdb_stat")
            count += status.ms_branch_pages + status.ms_leaf_pages + status.ms_overflow_pages
        }
        return count
    }
}
