public import Base
public import Crypto
import Journal
public import Store
import Synchronization

/// The work of each node for its cluster besides writing: it registers, makes a snapshot when one is due, and trims
/// the journal. It uses threads and connections of its own, from the server's start to its stop.
///
/// Every node does all of it. The engine's rows keep two nodes from making a snapshot at the same time.
public final class ClusterKeeper: Sendable {
    public struct Configuration: Sendable {
        public var address: JournalAddress
        public var node: ClusterNode
        /// The data directory, where the node's id is kept.
        public var directory: String
        public var masterKey: MasterKey
        public var random = RandomSource.system
        public var limits = Limits()
        /// Called with true if the node leaves snapshots to the others for a while, because its process ended while it
        /// made one, and with false when this is over.
        public var onHoldingBack: @Sendable (Bool) -> Void = { _ in }

        public init(_ node: ClusterNode, in directory: String, at address: JournalAddress, masterKey: MasterKey) {
            (self.node, self.directory, self.address, self.masterKey) = (node, directory, address, masterKey)
        }
    }

    fileprivate let store: Store
    fileprivate let configuration: Configuration
    fileprivate let log: Log
    fileprivate let seal: JournalSeal
    private let isStopping = Atomic(false)
    private let isMakingSnapshot = Atomic(false)
    private let trials: SnapshotTrials
    /// Until when the node leaves snapshots that are due to the others; nil: it makes them.
    private let heldBackUntil = Mutex<Instant?>(nil)
    private let wakeup = Semaphore()
    private let threads = Mutex<(keeper: OSThread?, maker: OSThread?)>((nil, nil))

    /// `store` is open with its journal. Throws if it is in no cluster.
    public init(_ store: Store, _ configuration: Configuration, log: Log) throws(StoreError) {
        guard let place = try store.journalPlace() else { throw .journal(.notJoined) }
        (self.store, self.configuration, self.log) = (store, configuration, log)
        seal = JournalSeal(
            clusterID: place.clusterID, masterKey: configuration.masterKey, random: configuration.random)
        trials = SnapshotTrials(in: configuration.directory)
        holdBack()
        threads.withLock { $0.keeper = OSThread(name: "cluster-keeper") { [self] in run() } }
    }

    /// Aborts a snapshot that is being made, and waits for the threads.
    public func stop() {
        isStopping.store(true, ordering: .releasing)
        wakeup.signal()
        threads.withLock { $0.keeper.take() }?.join()
        threads.withLock { $0.maker.take() }?.join()
    }

    /// Makes a snapshot, whether one is due or not. Nil if any node is making one, or if the server stops.
    @available(*, noasync, message: "blocks the thread")
    public func makeSnapshot() throws -> MadeSnapshot? {
        guard !isMakingSnapshot.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
        defer { isMakingSnapshot.store(false, ordering: .releasing) }
        let maker = SnapshotMaker(
            address: configuration.address, seal: seal, random: configuration.random, limits: configuration.limits)
        let began = Instant.now
        let trialCount = trials.count
        note(trialCount + 1)
        var isSound = false
        defer { note(isSound ? 0 : trialCount) }
        guard let made = try maker.make(of: store, while: { goesOn }) else { return nil }
        isSound = true
        endHoldingBack()
        log.notice(
            "made a snapshot of the cluster",
            [
                "position": .integer(Int64(clamping: made.position)),
                "bytes": .integer(Int64(clamping: made.byteCount)),
                "milliseconds": .integer(Instant.now.nanoseconds(since: began) / 1_000_000),
            ])
        return made
    }

    fileprivate var goesOn: Bool { !isStopping.load(ordering: .acquiring) }

    // MARK: Snapshots that end the process

    private func note(_ trialCount: Int) {
        do throws(FileError) {
            try trials.note(trialCount)
        } catch {
            // A snapshot needs no room here, so a full disk keeps none from being made.
            log.warning("a snapshot's begin or end was not noted", ["error": .text("\(error)")])
        }
    }

    private func holdBack() {
        let count = trials.count
        guard count > 0 else { return }
        let pause = SnapshotTrials.pause(after: count, configuration.limits.journal)
        heldBackUntil.withLock { $0 = Instant.now.advanced(by: pause) }
        log.error(
            "the process ended while it made a snapshot of the cluster: see posternd --verify-store",
            ["times": .integer(Int64(count)), "seconds": .integer(pause.components.seconds)])
        configuration.onHoldingBack(true)
    }

    private func endHoldingBack() {
        let wasHeldBack = heldBackUntil.withLock { until in
            defer { until = nil }
            return until != nil
        }
        if wasHeldBack { configuration.onHoldingBack(false) }
    }

    private func isHeldBack() -> Bool {
        guard let until = heldBackUntil.withLock({ $0 }) else { return false }
        if Instant.now < until { return true }
        endHoldingBack()
        return false
    }

    // MARK: Rounds

    private func run() {
        var rounds = KeeperRounds(self)
        var isWell = true
        while goesOn {
            let pause: Duration
            do throws(JournalEngineError) {
                let result = try rounds.next()
                pause = result.pause
                if !isHeldBack(), result.isSnapshotDue { makeDueSnapshot() }
                isWell = true
            } catch {
                rounds.disconnect()
                pause = configuration.limits.journal.registrationInterval
                if isWell { log.warning("the cluster's tables do not answer", ["error": .text("\(error)")]) }
                isWell = false
            }
            _ = wakeup.wait(for: pause)
        }
    }

    private func makeDueSnapshot() {
        guard !isMakingSnapshot.load(ordering: .acquiring) else { return }
        threads.withLock { $0.maker.take() }?.join()
        do throws(ThreadError) {
            let thread = try OSThread.started(name: "cluster-copy") { [self] in
                do {
                    _ = try makeSnapshot()
                } catch {
                    log.error("no snapshot of the cluster could be made", ["error": .text("\(error)")])
                }
            }
            threads.withLock { $0.maker = thread }
        } catch {
            log.error("no snapshot of the cluster could be made", ["error": .text("\(error)")])
        }
    }
}

/// The rounds of a `ClusterKeeper`, and its state between them. The keeper's thread only.
private struct KeeperRounds {
    struct Outcome {
        var pause: Duration
        var isSnapshotDue = false
    }

    private let keeper: ClusterKeeper
    private var node: ClusterNode
    private var connection: PostgreSQLConnection?
    private var hasRegistered = false
    private var nextTrim = Instant.now
    private var growth = JournalGrowth()

    init(_ keeper: ClusterKeeper) {
        (self.keeper, self.node) = (keeper, keeper.configuration.node)
    }

    private var limits: JournalLimits { keeper.configuration.limits.journal }

    mutating func disconnect() { connection = nil }

    mutating func next() throws(JournalEngineError) -> Outcome {
        let tables = try tables()
        // A store whose journal is not confirmed yet does not register.
        guard let status = keeper.store.journalStatus, status.isConfirmed, let synced = status.syncedPosition else {
            return Outcome(pause: .milliseconds(200))
        }
        try register(at: synced, NodeTables(tables, limits))
        guard Instant.now >= nextTrim else { return Outcome(pause: limits.registrationInterval) }
        nextTrim = Instant.now.advanced(by: limits.trimInterval)
        try trim(NodeTables(tables, limits))
        let snapshots = SnapshotTables(tables, limits)
        try snapshots.deleteOld()
        let isDue = try growth.isSnapshotDue(snapshots, limits)
        return Outcome(pause: limits.registrationInterval, isSnapshotDue: isDue)
    }

    private mutating func tables() throws(JournalEngineError) -> ClusterTables {
        let configuration = keeper.configuration
        if let connection { return ClusterTables(connection, configuration.address) }
        let new = try configuration.address.connect(to: keeper.seal, timeout: limits.answerTimeout)
        connection = new
        return ClusterTables(new, configuration.address)
    }

    /// Two processes over copies of one directory write the same row in turns. The one that notices takes another id.
    private mutating func register(at position: UInt64, _ nodes: NodeTables) throws(JournalEngineError) {
        if hasRegistered, let run = try nodes.run(of: node.id), run != node.run {
            keeper.log.error(
                "another process registered as this node: its data directory was copied",
                ["node": .text(Hex.encode(node.id).description)])
            do throws(FileError) {
                node = try node.renamed(in: keeper.configuration.directory, keeper.configuration.random)
            } catch {
                keeper.log.error("the node's id could not be written", ["error": .text("\(error)")])
            }
        }
        try nodes.register(node, position: position)
        hasRegistered = true
    }

    private func trim(_ nodes: NodeTables) throws(JournalEngineError) {
        let trimmed = try nodes.trim { keeper.goesOn }
        for id in trimmed.dropped {
            keeper.log.warning(
                "a node was away for too long and has to join again", ["node": .text(Hex.encode(id).description)])
        }
        if trimmed.entryCount > 0 {
            keeper.log.info("trimmed the journal", ["entries": .integer(Int64(trimmed.entryCount))])
        }
    }
}
