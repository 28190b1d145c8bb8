public import Base
public import Crypto
public import Messages
import Reactor
import Store
import Synchronization

/// Backups of the whole store, one at a time.
public final class Backups: Sendable {
    /// The way in which a backup was asked for, as the event names it.
    public enum Way: String, Sendable {
        case rpc
        case schedule
    }

    /// Backups that failed or were broken off.
    public let failures = Counter()
    /// When the last backup was complete; nil if none is known.
    public var lastWholeAt: Timestamp? { wholeAt.withLock { $0 } }

    let limits: Limits
    let resources: Resources
    private let key: HMACKey
    private let masterKeyID: [UInt8]
    private let projectID: Text
    private let pool: WorkerPool
    private let running = Mutex<Backup?>(nil)
    private let wholeAt = Mutex<Timestamp?>(nil)

    init(_ resources: Resources, _ masterKey: MasterKey, projectID: Text, pool: WorkerPool) {
        self.resources = resources
        self.limits = resources.limits
        self.key = masterKey.backupKey
        self.masterKeyID = masterKey.id
        self.projectID = projectID
        self.pool = pool
    }

    /// Begins a backup, which holds its own event. BACKUP_IN_PROGRESS.
    public func begin(_ way: Way, origin: Origin) async throws -> Backup {
        let backup = Backup(of: self, pool: pool, room: resources.store.watchRoom())
        try running.withLock { running throws(Failure) in
            guard running == nil else { throw .backupInProgress }
            running = backup
        }
        do {
            let now = resources.clock.now()
            try await resources.store.write(for: .removal) { transaction in
                try transaction.appendEvent(
                    .backupTaken, tenantID: .empty, origin: origin, detail: Text(way.rawValue), now: now)
            }
            let header = BackupHeader(
                projectID: projectID, createdAtMicros: now.microseconds, masterKeyID: masterKeyID)
            backup.start(try resources.store.backup(header, key: key))
            return backup
        } catch {
            backup.end()
            throw error
        }
    }

    /// Gives up a backup that nobody reads, or that is read too slowly: it holds a snapshot, and blocks the next
    /// backup. Also gives up one during which the store ran out of room, because of the snapshot perhaps.
    public func endStalled() {
        guard let backup = running.withLock({ $0 }) else { return }
        if backup.isStalled(limits) {
            resources.log.warning("a backup was given up: nobody reads it, or too slowly", [:])
        } else if backup.hasUsedUpRoom {
            resources.log.warning(
                "a backup was given up: the store has no room, and what is deleted makes none until the backup ends",
                [:])
        } else {
            return
        }
        backup.end()
    }

    public var isRunning: Bool { running.withLock { $0 != nil } }

    /// Whether the backup is of this store, or of another node of its cluster: those have one project and master key.
    public func isOwn(_ header: BackupHeader) -> Bool {
        header.projectID == projectID && header.masterKeyID == masterKeyID
    }

    /// A part of file names, made of the project and the master key: hexadecimal digits. Only a copy of the store has
    /// the same.
    public var fileMark: Text { Hex.encode(Digest.sha256(masterKeyID + projectID.bytes).prefix(16)) }

    /// Notes a backup from before the start, so that a restart does not hide for how long there has been none.
    public func noteEarlier(age: Duration) {
        let time = resources.clock.now() - age
        wholeAt.withLock { $0 = $0 ?? time }
    }

    fileprivate func ended(_ backup: Backup, isWhole: Bool) {
        if leave(backup) { count(isWhole: isWhole) }
    }

    /// Lets the next backup begin. False if this one had given up its place before.
    fileprivate func leave(_ backup: Backup) -> Bool {
        running.withLock { running in
            guard running === backup else { return false }
            running = nil
            return true
        }
    }

    fileprivate func count(isWhole: Bool) {
        if isWhole { wholeAt.withLock { $0 = resources.clock.now() } } else { failures.add() }
    }
}

extension MasterKey {
    /// Authenticates backups.
    public var backupKey: HMACKey { hmac("backup") }
}

/// A backup that is being taken, for one reader.
public final class Backup: Sendable {
    private enum State {
        case begun
        /// The reader has not asked for the next piece yet.
        case idle(BackupStream, since: Instant)
        /// A piece is being made.
        case reading
        /// All pieces were taken by a reader in this process, which has not said yet whether it could keep them.
        case taken
        case ended
    }

    private let owner: Backups
    private let pool: WorkerPool
    private let room: RoomWatch
    private let state = Mutex(State.begun)
    private let beganAt = Instant.now
    private let byteCount = Atomic<Int>(0)

    fileprivate init(of owner: Backups, pool: WorkerPool, room: RoomWatch) {
        self.owner = owner
        self.pool = pool
        self.room = room
    }

    fileprivate func start(_ stream: BackupStream) { state.withLock { $0 = .idle(stream, since: .now) } }

    /// The next bytes of the backup's file; nil after the last. DEADLINE_EXCEEDED once the backup was given up.
    public func next() async throws -> [UInt8]? {
        let stream = try take()
        do {
            let piece = try await pool.run(tenant: WorkerPool.ownWork, deadline: .distantFuture) { try stream.next() }
            return goOn(with: stream, piece)
        } catch {
            end()
            throw error
        }
    }

    /// The next bytes, as from `next`, for a reader in this process on a thread that may block. The backup is complete
    /// when the reader calls `kept`.
    @available(*, noasync, message: "blocks the thread")
    public func nextBlocking() throws -> [UInt8]? {
        let stream = try take()
        do {
            if let piece = try stream.next() { return goOn(with: stream, piece) }
        } catch {
            end()
            throw error
        }
        // A disk that is full, or gone, may refuse the last bytes only when they are synced.
        if owner.leave(self) { state.withLock { $0 = .taken } }
        return nil
    }

    /// The reader of `nextBlocking` has the whole backup on its disk, under the name of a backup.
    public func kept() {
        if leaveTaken() { owner.count(isWhole: true) }
    }

    /// Gives up the backup if it is not complete. Later calls do nothing.
    public func end() {
        if leaveTaken() { return owner.count(isWhole: false) }
        state.withLock { $0 = .ended }
        owner.ended(self, isWhole: false)
    }

    /// Whether all pieces were taken, and it was not said yet whether they are kept.
    private func leaveTaken() -> Bool {
        state.withLock { state in
            guard case .taken = state else { return false }
            state = .ended
            return true
        }
    }

    /// Whether the reader is too slow: no piece was taken for a while, or too few bytes since the backup began.
    func isStalled(_ limits: Limits) -> Bool {
        state.withLock { state in
            guard case .idle(_, let since) = state else { return false }
            let now = Instant.now
            if since.advanced(by: limits.backupStallMax) < now { return true }
            guard beganAt.advanced(by: limits.backupSlowMax) < now else { return false }
            let seconds = Int(now.nanoseconds(since: beganAt) / 1_000_000_000)
            return byteCount.load(ordering: .relaxed) / max(1, seconds) < limits.backupBytesPerSecondMin
        }
    }

    /// Whether the store refuses writes for lack of room while the backup holds a snapshot, and did not before.
    var hasUsedUpRoom: Bool {
        guard room.hasRunOut else { return false }
        return state.withLock { state in
            switch state {
            case .idle, .reading: true
            case .begun, .taken, .ended: false
            }
        }
    }

    private func take() throws(Failure) -> BackupStream {
        try state.withLock { state throws(Failure) in
            guard case .idle(let stream, _) = state else { throw .backupGivenUp }
            state = .reading
            return stream
        }
    }

    private func goOn(with stream: BackupStream, _ piece: [UInt8]?) -> [UInt8]? {
        state.withLock { state in
            guard case .reading = state else { return }
            state = piece == nil ? .ended : .idle(stream, since: .now)
        }
        byteCount.add(piece?.count ?? 0, ordering: .relaxed)
        if piece == nil { owner.ended(self, isWhole: true) }
        return piece
    }
}

extension Backups {
    /// Accepts a store that an operator has just restored from a backup. An event is written, and the store gets a new
    /// witness. Every earlier refresh token is void when the store is opened next, because sessions that had ended are
    /// open again in it. Codes and pending sign-ins of the backup are void, because they may have been used since.
    func noteRestored(_ header: BackupHeader) async throws {
        let (now, random) = (resources.clock.now(), resources.random)
        // The store copies its pages soon after the backup's time. A clock that is wrong at the restore must not void
        // what is made later, nor leave codes of the backup good.
        let takenAt = Timestamp(microseconds: header.createdAtMicros)
        let newest = max(takenAt, min(now, takenAt + TimeKeeping.slack))
        try await resources.store.acceptRollback { transaction in
            try transaction.beginEpoch(random)
            try transaction.setNewestOfBackup(newest)
            try transaction.appendEvent(
                .backupRestored, tenantID: .empty, origin: .server,
                detail: Text(
                    "by an operator, from the backup of \(header.createdAtMicros), up to event \(header.newestEvent)"),
                now: now)
        }
    }
}

extension Failure {
    fileprivate static let backupInProgress = Failure(
        .backupInProgress, "Another backup is being taken; try again when it has ended.")
    fileprivate static let backupGivenUp = Failure(
        .deadlineExceeded,
        "The backup was given up: its bytes were not taken, or too slowly, or the store ran out of room; try again.")
}
