import Base
internal import CLMDB
import Glibc

/// Numbers for /metrics. Sizes are bytes, counts are since the store was opened.
public struct StoreStatistics: Sendable, Equatable {
    public var mapByteCount: Int
    /// The bytes up to the last used page, including free pages in between.
    public var usedByteCount: Int
    /// The data file, including the space that was reserved for it ahead.
    public var fileByteCount: Int64
    public var lastTransactionID: Int
    public var readersMax: Int
    /// The most reader slots that were in use at one time.
    public var readersUsed: Int
    public var queuedWrites: Int
    /// Write transactions, those that changed something, and the writes they answered.
    public var batches: UInt64
    public var commits: UInt64
    public var writes: UInt64
    /// Batches that failed for good, and transactions run again because a body threw after a change.
    public var writeErrors: UInt64
    public var reruns: UInt64
    /// Writes that were refused because the store is full. In a cluster, also each vain try to apply entries.
    public var refusals: UInt64
    /// The most records that one write of a call changed. All others wait while it runs.
    public var largestWrite: Int64
    /// Whether the store takes fewer writes than usual, or none.
    public var isDegraded: Bool
    /// Writes and syncs of the witness that failed.
    public var witnessErrors: UInt64
}

extension Store {
    /// Cheap enough to be asked for on every scrape. Any thread.
    public func statistics() throws(StoreError) -> StoreStatistics {
        try environment.whileOpen { raw throws(StoreError) in
            var info = MDB_envinfo()
            try StoreError.check(mdb_env_info(raw, &info), "mdb_env_info")
            var status = MDB_stat()
            try StoreError.check(mdb_env_stat(raw, &status), "mdb_env_stat")
            return StoreStatistics(
                mapByteCount: info.me_mapsize, usedByteCount: (info.me_last_pgno + 1) * Int(status.ms_psize),
                fileByteCount: counters.fileBytes.value, lastTransactionID: info.me_last_txnid,
                readersMax: Int(info.me_maxreaders), readersUsed: Int(info.me_numreaders),
                queuedWrites: queuedWriteCount,
                batches: counters.batches.value, commits: counters.commits.value, writes: counters.writes.value,
                writeErrors: counters.failures.value, reruns: counters.reruns.value,
                refusals: counters.refusals.value, largestWrite: counters.largestWrite.value,
                isDegraded: counters.troubles.value != 0,
                witnessErrors: counters.witnessFailures.value)
        }
    }

    /// Frees the slots of readers whose process was killed, because they keep old pages from being used again. Returns
    /// how many. Called once a minute.
    @discardableResult
    public func checkReaders() throws(StoreError) -> Int {
        try environment.whileOpen { raw throws(StoreError) in
            var deadCount: Int32 = 0
            try StoreError.check(mdb_reader_check(raw, &deadCount), "mdb_reader_check")
            return Int(deadCount)
        }
    }

    /// Writes a compact, consistent copy into `directory`, which is made if it is missing and must not hold a store.
    ///
    /// Blocks for as long as it takes to write the data; the file grows by what is written meanwhile. A failed copy is
    /// removed.
    @available(*, noasync, message: "blocks the thread")
    public func backup(to directory: String) throws(StoreError) {
        if mkdir(directory, 0o700) != 0, errno != EEXIST {
            throw StoreError(code: errno, operation: "create the backup's directory")
        }
        let path = DataFile.path(in: directory)
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw StoreError(code: errno, operation: "create the backup") }
        defer { Glibc.close(file) }
        do throws(StoreError) {
            try environment.whileOpen { raw throws(StoreError) in
                try StoreError.check(mdb_env_copyfd2(raw, file, UInt32(MDB_CP_COMPACT)), "mdb_env_copyfd2")
            }
            guard fsync(file) == 0 else { throw StoreError(code: errno, operation: "fsync the backup") }
            try syncDirectory(directory)
        } catch {
            unlink(path)
            throw error
        }
    }
}
