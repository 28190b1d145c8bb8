public import Base
public import Crypto
import Glibc
import Journal
public import Store

/// Turns a data directory into that of a new node of a cluster, by the cluster's newest snapshot: the snapshot is made
/// ready in a folder of its own, checked, and put in its place. The node reads later entries from the journal when it
/// serves.
public struct Joining {
    public let address: JournalAddress
    public let node: ClusterNode
    public let masterKey: MasterKey
    /// How the store is opened. Its directory is the one that joins; the caller has it locked.
    public let store: StoreConfiguration
    public let authenticator: any RecordAuthenticator
    public let eventHash: EventHash
    public let limits: Limits

    public init(
        _ store: StoreConfiguration, as node: ClusterNode, at address: JournalAddress, masterKey: MasterKey,
        authenticator: any RecordAuthenticator, eventHash: @escaping EventHash, limits: Limits
    ) {
        (self.store, self.node, self.address, self.masterKey) = (store, node, address, masterKey)
        (self.authenticator, self.eventHash, self.limits) = (authenticator, eventHash, limits)
    }

    /// The result of joining.
    public struct Joined: Sendable {
        /// The place of the node's store in the journal.
        public let place: JournalPlace
        /// The bytes of the snapshot.
        public let byteCount: UInt64
        /// The name of the earlier data file, if there was one.
        public let kept: String?
    }

    /// Whether a joining was interrupted in the directory. If so, a missing store is not lost: there was none yet.
    public static func isInterrupted(in directory: String) -> Bool { JoiningFolder.isThere(in: directory) }

    /// Deletes the files that an interrupted joining left.
    public static func clear(_ directory: String) { JoiningFolder(directory: directory).clear() }

    /// `replacing`: an existing store is replaced, and kept under another name. `beforeTakingPlace` gets the folder of
    /// the new store while the earlier store is still in its place.
    @available(*, noasync, message: "blocks the thread")
    public func run(
        replacing: Bool = false, beforeTakingPlace: (_ folder: String) throws -> Void = { _ in }
    ) throws -> Joined {
        let folder = JoiningFolder(directory: store.directory)
        guard replacing || access(store.directory + "/data.mdb", F_OK) != 0 else {
            throw ClusterProblem.notEmpty(directory: store.directory)
        }
        let session = try JoiningSession(address, masterKey, store.random, limits)
        let former = try replacing ? formerPosition(session) : nil
        var tryCount = 0
        while true {
            tryCount += 1
            do {
                try folder.begin()
                let (place, byteCount) = try fetch(into: folder, session, former: former)
                try beforeTakingPlace(folder.path)
                let kept = try folder.takePlace()
                // The node has joined. If the engine is lost now, the node registers when it serves; until then, what
                // is registered keeps more entries than it needs.
                try? session.ask { tables throws(JournalEngineError) in
                    try NodeTables(tables, limits.journal).register(node, position: place.mark.position)
                }
                return Joined(place: place, byteCount: byteCount, kept: kept)
            } catch SnapshotProblem.replaced where tryCount < limits.journal.joiningTriesMax {
                continue
            } catch {
                folder.clear()
                try? session.ask(patience: .zero) { tables throws(JournalEngineError) in
                    let nodes = NodeTables(tables, limits.journal)
                    if let former {
                        try nodes.register(node, position: former)
                    } else {
                        try nodes.remove(node.id)
                    }
                }
                throw error
            }
        }
    }

    /// The position with which the store that is to be replaced is registered. Until another store has taken its place,
    /// the entries behind it are kept: the joining may fail, and the node then goes on with this store.
    private func formerPosition(_ session: JoiningSession) throws -> UInt64? {
        guard access(store.directory + "/data.mdb", F_OK) == 0 else { return nil }
        return try session.ask { tables throws(JournalEngineError) in
            try NodeTables(tables, limits.journal).position(of: node.id)
        }
    }

    // MARK: One try

    private func fetch(
        into folder: JoiningFolder, _ session: JoiningSession, former: UInt64?
    ) throws -> (place: JournalPlace, byteCount: UInt64) {
        let row = try choose(session, former)
        let byteCount = try write(row, to: folder.path + "/data.mdb", session, former)
        var opened = store
        opened.directory = folder.path
        (opened.lock, opened.damage, opened.journal) = (nil, nil, nil)
        try checkRecords(of: opened)
        let place = try Store.adopt(opened, authenticator: authenticator, eventHash: eventHash)
        try check(place, against: row, session)
        return (place, byteCount)
    }

    /// The newest snapshot. The node registers before it reads any of it: then neither the snapshot nor the entries
    /// that the node needs are deleted.
    private func choose(_ session: JoiningSession, _ former: UInt64?) throws -> SnapshotTables.Row {
        guard let row = try session.snapshots({ tables throws(JournalEngineError) in try tables.newest() }) else {
            throw SnapshotProblem.none
        }
        try register(row, session, former)
        let (isThere, isReached) = try session.snapshots { tables throws(JournalEngineError) in
            (try tables.exists(row.id), try tables.reachesBack(to: row.mark.position))
        }
        guard isThere else { throw SnapshotProblem.replaced }
        guard isReached else { throw SnapshotProblem.behindJournal(position: row.mark.position) }
        return row
    }

    private func register(_ row: SnapshotTables.Row, _ session: JoiningSession, _ former: UInt64?) throws {
        let position = min(row.mark.position, former ?? row.mark.position)
        try session.ask { tables throws(JournalEngineError) in
            try NodeTables(tables, limits.journal).register(node, position: position, joining: row.id)
        }
    }

    /// Writes the snapshot's parts to a new file, and syncs it.
    private func write(
        _ row: SnapshotTables.Row, to path: String, _ session: JoiningSession, _ former: UInt64?
    ) throws -> UInt64 {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw FileError(path: path, call: "create", code: errno) }
        defer { close(file) }
        let seal = session.seal.snapshot(row.id, at: row.mark)
        var (byteCount, number): (UInt64, UInt64) = (0, 0)
        var registered = Instant.now
        while true {
            let part = try part(number, of: row, session)
            let bytes = try part.body.withUnsafeBytes { body throws(SnapshotProblem) in
                try seal.open(body, part: number, isLast: part.isLast)
            }
            try PrivateFile.writeAll(bytes, to: file, path: path)
            byteCount += UInt64(bytes.count)
            number += 1
            if part.isLast { break }
            if Instant.now >= registered.advanced(by: limits.journal.registrationInterval) {
                try register(row, session, former)
                registered = .now
            }
        }
        guard fsync(file) == 0 else { throw FileError(path: path, call: "fsync", code: errno) }
        return byteCount
    }

    private func part(
        _ number: UInt64, of row: SnapshotTables.Row, _ session: JoiningSession
    ) throws -> SnapshotTables.Part {
        let found = try session.snapshots { tables throws(JournalEngineError) in try tables.part(number, of: row.id) }
        if let found { return found }
        let isThere = try session.snapshots { tables throws(JournalEngineError) in try tables.exists(row.id) }
        throw isThere ? SnapshotProblem.missing(part: number) : SnapshotProblem.replaced
    }

    /// Reads each page and each record, and puts long values together. The seals of the parts only show that the store
    /// is as its maker's was, and that one may have been damaged.
    ///
    /// The records are not compared with each other otherwise: a chain of events that is broken on all nodes must not
    /// keep a node from joining.
    private func checkRecords(of store: StoreConfiguration) throws {
        let report: StoreReport
        do {
            report = try StoreReport(recordsOf: store, authenticator: authenticator, eventHash: eventHash)
        } catch let error as StoreError where error.isDamage {
            throw SnapshotProblem.damaged
        }
        guard report.isSound else { throw SnapshotProblem.damaged }
    }

    /// Checks that the store is of this cluster, at the snapshot's entry or after it, and that the journal goes on from
    /// there.
    private func check(
        _ place: JournalPlace, against row: SnapshotTables.Row, _ session: JoiningSession
    ) throws {
        let isAtRow = place.mark == row.mark
        guard place.clusterID == session.seal.clusterID, isAtRow || place.mark.position > row.mark.position else {
            throw SnapshotProblem.otherStore
        }
        let (isHeld, isReached) = try session.snapshots { tables throws(JournalEngineError) in
            (try tables.holds(place.mark), try tables.reachesBack(to: place.mark.position))
        }
        guard isReached else { throw SnapshotProblem.replaced }
        guard isHeld else { throw SnapshotProblem.forked(position: place.mark.position) }
    }
}
