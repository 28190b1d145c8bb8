import Base
internal import CLMDB
import Glibc

/// Decides, before each commit, whether there is room for it: in the file, in the map, and above the reserve.
///
/// The writer's thread only.
final class StoreSpace {
    /// LMDB's environment.
    private let raw: OpaquePointer
    private let limits: Limits
    private let onTrouble: @Sendable (StoreTrouble?) -> Void
    private let rules: SpaceRules
    private let file: Int32
    private let pageByteCount: Int
    private let mapPages: Int
    private let tables: [MDB_dbi]
    private var growth: FileGrowth
    /// Pages in use at the last commit that was counted.
    private var usedPages: Int?
    private let counters: WriteCounters
    private var trouble: StoreTrouble?
    /// The trouble that was found before a commit: there is no room above the reserve.
    private var shortage: StoreTrouble?
    /// The trouble that a failed commit showed. It lasts until a write for growth succeeds.
    private var commitTrouble: StoreTrouble?
    private var isJournalAway = false
    private var isClockWrong = false
    private var removedAt: Instant?
    /// Whether LMDB's transaction has the layout that `postern_lmdb_head` expects.
    let knowsNextPage: Bool

    /// `tables`: those whose pages count as used. `onTrouble` hears each change of what keeps writes from being made.
    init(
        of raw: OpaquePointer, tables: [MDB_dbi], limits: Limits, counters: WriteCounters,
        allocate: @escaping FileGrowth.Allocate = FileGrowth.system,
        onTrouble: @escaping @Sendable (StoreTrouble?) -> Void
    ) throws(StoreError) {
        self.raw = raw
        self.tables = tables
        self.limits = limits
        self.onTrouble = onTrouble
        self.counters = counters
        var info = MDB_envinfo()
        try StoreError.check(mdb_env_info(raw, &info), "mdb_env_info")
        var status = MDB_stat()
        try StoreError.check(mdb_env_stat(raw, &status), "mdb_env_stat")
        var file: Int32 = -1
        try StoreError.check(mdb_env_get_fd(raw, &file), "mdb_env_get_fd")
        self.file = file
        self.pageByteCount = Int(status.ms_psize)
        self.rules = SpaceRules(limits, pageByteCount: pageByteCount)
        self.mapPages = info.me_mapsize / pageByteCount
        self.growth = FileGrowth(
            file: file, pageByteCount: pageByteCount, retryInterval: limits.fullDiskRetryInterval,
            allocate: allocate)
        counters.fileBytes.set(Int64(growth.pageCount * pageByteCount))
        self.knowsNextPage = try Self.isLayoutKnown(raw, lastPage: info.me_last_pgno)
    }

    /// Compares what the head of a transaction should hold with what LMDB's own functions return.
    private static func isLayoutKnown(_ raw: OpaquePointer, lastPage: Int) throws(StoreError) -> Bool {
        let transaction = try LMDB.beginTransaction(in: raw)
        defer { mdb_txn_abort(transaction) }
        let head = postern_lmdb_head(transaction)
        return head.next_page == lastPage + 1 && head.transaction_id == mdb_txn_id(transaction)
    }

    /// Whether a batch may commit.
    enum Verdict: Equatable {
        case granted
        /// Writes of the given purpose would take too much of the reserve. `wasShort`: the store was short before this
        /// batch, so that a part of the batch would be refused as well.
        case refused(wasShort: Bool)
    }
}

// MARK: - Before a commit

extension StoreSpace {
    /// Whether the transaction, whose writes are of `purpose` at the least, may commit. Throws `.full` if LMDB would
    /// write past the largest length that the file can have.
    ///
    /// Costs next to nothing while there is room. Near the end, it counts the pages of all tables in some 15 µs.
    func admit(_ transaction: OpaquePointer, purpose: WritePurpose, changeCount: Int) throws(StoreError) -> Verdict {
        let next = try nextPage(of: transaction, changeCount: changeCount)
        let reached = next + rules.slack
        let reserve = rules.reserve(reached: reached, limit: mapPages)
        if reached + reserve > growth.pageCount {
            let targets = rules.growthTargets(reached: reached, reserve: reserve, limit: mapPages)
            counters.waitingForDisk { growth.grow(toOneOf: targets) }
            counters.fileBytes.set(Int64(growth.pageCount * pageByteCount))
        }
        if reached + reserve <= min(mapPages, growth.pageCount) {
            usedPages = nil
            shortage = nil
            tell()
            return .granted
        }
        let before = if let usedPages { usedPages } else { try countCommittedPages() }
        let used = try countUsedPages(transaction)
        let listed = try LMDB.countPages(of: [LMDB.freePages], in: transaction)
        let verdict = verdict(purpose, before: before, used: used, listed: listed, reached: reached)
        tell()
        // LMDB would write past the end of the file. For its list of free pages, it may still do so in the commit; see
        // `meaning(of:)`.
        if changeCount > 0, next > min(mapPages, growth.pageCount) { throw .full }
        return verdict
    }

    /// Decides on a batch that comes near the reserve. After it, tables take `used` pages, and the list of free pages
    /// `listed`. Free pages inside of the file are as good as those at its end. The list grows and shrinks by itself in
    /// the commit: no batch is to blame for it.
    private func verdict(_ purpose: WritePurpose, before: Int, used: Int, listed: Int, reached: Int) -> Verdict {
        let limit = min(mapPages, growth.pageCount)
        let reserve = rules.reserve(reached: reached, limit: limit)
        let free = limit - used - listed
        let grown = used - before
        let isRefused = grown > 0 && free < rules.floor(purpose, reserve: reserve)
        if isRefused, shortage == nil {
            // A batch of many writes, or a giant write, may be refused while there is room for others.
            if grown <= rules.slack { shortage = kindOfShortage }
            return .refused(wasShort: false)
        }
        // The shortage ends a quarter of the reserve above it, so that it does not come and go with each write.
        if free < reserve {
            shortage = kindOfShortage
        } else if free >= reserve + reserve / 4 {
            shortage = nil
        }
        if isRefused { return .refused(wasShort: true) }
        usedPages = used
        return .granted
    }

    private var kindOfShortage: StoreTrouble { growth.pageCount < mapPages ? .diskFull : .mapFull }

    /// Throws `.removed` if the file has no name any more: its contents are gone when the process ends.
    func requireLinkedFile() throws(StoreError) {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_nlink == 0 else { return }
        if removedAt == nil { removedAt = .now }
        tell()
        throw .removed
    }

    var isInTrouble: Bool { trouble != nil }

    /// Whether the file has been gone for `Limits.removedStoreGrace`, so that nobody reads from it any more.
    var isGoneForGood: Bool {
        removedAt.map { Instant.now >= $0.advanced(by: limits.removedStoreGrace) } ?? false
    }

    /// The first page that the transaction has not taken. All pages before it are in the file after the commit.
    private func nextPage(of transaction: OpaquePointer, changeCount: Int) throws(StoreError) -> Int {
        if knowsNextPage { return Int(postern_lmdb_head(transaction).next_page) }
        // For another LMDB, a bound by the pages that a change usually copies. If a commit needs more and finds the
        // disk full, that is recognised afterwards.
        var info = MDB_envinfo()
        try StoreError.check(mdb_env_info(raw, &info), "mdb_env_info")
        return info.me_last_pgno + 1 + 8 * changeCount
    }

    private func countCommittedPages() throws(StoreError) -> Int {
        let transaction = try LMDB.beginTransaction(in: raw, isReadOnly: true)
        defer { mdb_txn_abort(transaction) }
        return try countUsedPages(transaction)
    }

    /// The pages of every table and of the list of tables, and the two meta pages.
    private func countUsedPages(_ transaction: OpaquePointer) throws(StoreError) -> Int {
        try 2 + LMDB.countPages(of: tables, in: transaction)
    }
}

// MARK: - After a commit

extension StoreSpace {
    /// The error that a failed mdb_txn_commit means.
    ///
    /// - The meta page could not be written: LMDB gives the environment up, whatever the reason. Fatal.
    /// - EIO: a failing disk, which is fatal; or a write that was done in part because the disk is full. The file
    ///   system is asked for room, and its answer decides. If the disk fails and is full as well, treating it as full
    ///   does no harm: the transaction was given up, and LMDB writes all pages of a later one again before it syncs.
    /// - ENOSPC, EDQUOT: full, wherever it showed.
    func meaning(of code: Int32) -> StoreError {
        if isGivenUp { return .fatal(code: code) }
        switch code {
        case EIO where counters.waitingForDisk({ growth.isRefused(pages: max(1_024, rules.reserveMin)) }):
            commitTrouble = .diskFull
            tell()
            return .full
        case EROFS: commitTrouble = .readOnly
        case ENOSPC, EDQUOT: commitTrouble = .diskFull
        default: break
        }
        tell()
        return StoreError(code: code, operation: "mdb_txn_commit")
    }

    /// Notes a successful commit that changed something. The weakest of its writes was for `purpose`.
    func committed(_ purpose: WritePurpose) {
        guard let found = commitTrouble, found == .readOnly || purpose == .growth else { return }
        commitTrouble = nil
        tell()
    }

    /// Whether LMDB has given the environment up. After a failed meta page, it answers every begin with MDB_PANIC, even
    /// that of a read.
    private var isGivenUp: Bool {
        var begun: OpaquePointer?
        let code = mdb_txn_begin(raw, nil, UInt32(MDB_RDONLY), &begun)
        if let begun { mdb_txn_abort(begun) }
        return code == MDB_PANIC
    }

    /// Notes that the engine of the cluster's journal does not answer, or answers again.
    func journal(isAway: Bool) {
        isJournalAway = isAway
        tell()
    }

    /// Notes whether this node's clock is too far from the engine's. Called with each answer of the engine.
    func clock(isWrong: Bool) {
        guard isWrong != isClockWrong else { return }
        isClockWrong = isWrong
        tell()
    }

    private var presentTrouble: StoreTrouble? {
        if removedAt != nil { return .removed }
        if isJournalAway { return .journalAway }
        return isClockWrong ? .clockWrong : commitTrouble ?? shortage
    }

    private func tell() {
        counters.shortages.set((commitTrouble ?? shortage) == nil ? 0 : 1)
        let found = presentTrouble
        guard found != trouble else { return }
        trouble = found
        counters.troubles.set(found == nil ? 0 : 1)
        onTrouble(found)
    }
}
