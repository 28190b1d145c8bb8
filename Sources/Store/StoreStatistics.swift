import Base
internal import CLMDB
import Glibc

/// Numbers for /metrics. Sizes are bytes, counts are since the store was opened.
public struct StoreStatistics: Sendable, Equatable {
    public struct Space: Sendable, Equatable {
        /// The bytes of the pages that hold something, and of LMDB's list of the free ones.
        public var usedByteCount: Int
        /// The bytes that the store can still take: on the disk, and in the map.
        public var roomByteCount: Int
    }

    public var mapByteCount: Int
    /// Nil where a damaged list of tables does not tell it.
    public var space: Space?
    /// The bytes up to the last used page, including free pages in between. They never become fewer.
    public var extentByteCount: Int
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
    /// How long the present commit, sync or growth of the file has waited for the disk; zero while there is none.
    public var diskWait: Duration
    /// Writes and syncs of the witness that failed.
    public var witnessErrors: UInt64
}

extension Store {
    /// Cheap enough to be asked for on every scrape. Any thread.
    public func statistics() throws(StoreError) -> StoreStatistics {
        let usedPages = try? read { try $0.countUsedPages() }
        return try environment.whileOpen { raw throws(StoreError) in
            var info = MDB_envinfo()
            try StoreError.check(mdb_env_info(raw, &info), "mdb_env_info")
            var status = MDB_stat()
            try StoreError.check(mdb_env_stat(raw, &status), "mdb_env_stat")
            let pageByteCount = Int(status.ms_psize)
            let space = try usedPages.map { count throws(StoreError) in
                let used = count * pageByteCount
                return StoreStatistics.Space(
                    usedByteCount: used, roomByteCount: try roomByteCount(raw, used: used, map: info.me_mapsize))
            }
            return StoreStatistics(
                mapByteCount: info.me_mapsize, space: space,
                extentByteCount: (info.me_last_pgno + 1) * pageByteCount,
                fileByteCount: counters.fileBytes.value, lastTransactionID: info.me_last_txnid,
                readersMax: Int(info.me_maxreaders), readersUsed: Int(info.me_numreaders),
                queuedWrites: queuedWriteCount,
                batches: counters.batches.value, commits: counters.commits.value, writes: counters.writes.value,
                writeErrors: counters.failures.value, reruns: counters.reruns.value,
                refusals: counters.refusals.value, largestWrite: counters.largestWrite.value,
                isDegraded: counters.troubles.value != 0 || isDiskSilent, diskWait: diskWait,
                witnessErrors: counters.witnessFailures.value)
        }
    }

    /// The file can become as long as the map, or as the disk has room for. Pages in it that hold nothing are used
    /// again.
    private func roomByteCount(_ raw: OpaquePointer, used: Int, map: Int) throws(StoreError) -> Int {
        var file: Int32 = -1
        try StoreError.check(mdb_env_get_fd(raw, &file), "mdb_env_get_fd")
        let free = freeByteCount(ofDiskWith: file)
        return max(0, min(map, Int(clamping: counters.fileBytes.value &+ free)) - used)
    }

    /// How long the present commit, sync or growth of the file has waited for the disk; zero while there is none. Any
    /// thread.
    public var diskWait: Duration { counters.diskWait }

    /// Whether a commit has waited for the disk for so long that the disk may never answer. Writes wait, and are not
    /// refused. Any thread.
    public var isDiskSilent: Bool { diskWait > Self.diskPatience }

    private static let diskPatience = Duration.seconds(5)

    /// Throws `.removed` if the data file was deleted or replaced; some time after that was first noticed, the store
    /// ends. Called once a minute, because there may be no other write that would notice it.
    public func checkFile() async throws { try await write(for: .removal) { _ in } }

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

extension ReadTransaction {
    /// The pages of every table, of the list of tables and of the list of free pages, and the two meta pages. Takes
    /// some 15 µs.
    fileprivate func countUsedPages() throws(StoreError) -> Int {
        try 2 + LMDB.countPages(of: [LMDB.freePages] + environment.tables.allHandles, in: raw)
    }
}

/// The bytes that the file's disk has free for this process. If the disk does not say it: more than any map has.
private func freeByteCount(ofDiskWith file: Int32) -> Int64 {
    var status = statvfs()
    guard fstatvfs(file, &status) == 0 else { return Int64.max / 2 }
    let (bytes, isTooMany) = status.f_bavail.multipliedReportingOverflow(by: status.f_frsize)
    return isTooMany ? Int64.max / 2 : min(Int64.max / 2, Int64(clamping: bytes))
}
