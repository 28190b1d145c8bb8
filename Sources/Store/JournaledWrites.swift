import Base
internal import CLMDB
import Glibc
import Journal
import Synchronization

/// The work of the writer's thread in a cluster: it performs the actions of the protocol (`JournalNode`) one after the
/// other, over LMDB here and over the engine through `JournalEngine`.
///
/// The bodies of a batch run in an open transaction of LMDB. Their changes are appended to the journal as an entry.
/// Only when the entry has its place there, the transaction is committed and the writes are answered.
final class JournaledWrites {
    let writer: Writer
    let engine: any JournalEngine
    let alarm: EventDescriptor
    var clusterID: [UInt8] = []
    var node = JournalNode()
    var actions: [JournalAction] = []
    var heads: [JournalHead] = []
    /// Requests that were taken from the queue and are not decided, or are to be decided again.
    var waiting: [WriteRequest] = []
    /// Requests that are decided in the open transaction and not answered.
    var decided: ArraySlice<WriteRequest> = []
    var open: OpaquePointer?
    /// The open transaction's changes for every node; nil if it changes nothing, or only this node's own rows.
    var entry: [UInt8]?
    /// The name of the last entry of decided writes that was sent.
    private var sentID: BatchID?
    /// The row of that name, after it was opened.
    private var ownMark: JournalMark?
    /// Since when the engine is of no use: it cannot be reached, or takes no entries, or gives none out.
    private var awaySince: Instant?
    /// How many connections in a row were lost before they were of any use (`isBack`).
    private var uselessConnections = 0
    private var pause = JournaledWrites.pauseMin
    private static let pauseMin = Duration.milliseconds(20)
    var outruns: Outruns
    var isClosing = false
    /// How many requests the next entry is tried with: more than fitted last time are only tried step by step.
    var partMax = Int.max

    init(_ writer: Writer, _ engine: any JournalEngine, _ alarm: EventDescriptor) {
        (self.writer, self.engine, self.alarm) = (writer, engine, alarm)
        outruns = Outruns(writer.environment.limits.journal)
    }

    var environment: Environment { writer.environment }
    var limits: Limits { environment.limits }

    func runUntilClosed() {
        do throws(StoreError) {
            // Proof: the store was not opened otherwise.
            guard let place = try readPlace() else { preconditionFailure("a journal of no cluster") }
            clusterID = place.clusterID
            engine.use(clusterID: clusterID)
            environment.journalStatus.withLock { $0.clusterID = clusterID }
            handle(.began(place.mark))
        } catch {
            end(error)
        }
        while writer.fatal == nil, !isClosing {
            if !actions.isEmpty {
                perform(actions.removeFirst())
            } else if !takeRequests() {
                break
            } else if actions.isEmpty {
                if node.isServing { isBack() }
                sleep()
            }
        }
        leaveOpenTransaction()
        engine.disconnect()
        refuseRest()
        if writer.isSyncDue { writer.sync() }
    }

    func readPlace() throws(StoreError) -> JournalPlace? {
        let raw = try writer.begin()
        defer { mdb_txn_abort(raw) }
        return try WriteTransaction(raw: raw, environment: environment, batch: writer.batch).reading.journalPlace()
    }

    func handle(_ event: JournalEvent) {
        actions += node.handle(event) { BatchID(random: environment.configuration.random) }
        environment.journalStatus.withLock { $0.note(node) }
    }

    /// Nothing can be written after this. The decided writes may be in the journal. An error that a store without a
    /// journal survives ends this one too: a node that leaves out an entry can make no later one.
    func end(_ cause: StoreError) {
        let error = cause.endsTheStore ? cause : .fatal(code: EIO)
        let (mayBeThere, left) = (entry == nil ? [] : decided, entry == nil ? decided + waiting : waiting[...])
        leaveOpenTransaction()
        writer.counters.failures.add()
        (decided, waiting, actions) = ([], [], [])
        writer.fail(mayBeThere, .journal(.outcomeUnknown))
        writer.fail(left, error)
        environment.journalStatus.withLock { $0.isConnected = false }
    }

    func leaveOpenTransaction() {
        if let open { mdb_txn_abort(open) }
        (open, entry) = (nil, nil)
    }
}

// MARK: - Actions

extension JournaledWrites {
    private func perform(_ action: JournalAction) {
        switch action {
        case .join: end(.journal(.trimmed(position: (try? readPlace())?.mark.position ?? 0)))
        case .connect: connect()
        case .run: decide()
        case .abort: abort()
        case .forget: forget()
        case .answer:
            isBack()
            answer()
        case .stop(.forked(let mark)): end(.journal(.forked(position: mark.position)))
        case .stop(.damaged(let position)): end(.journal(.damaged(position: position)))
        case .read(let position):
            let asked = Asked(environment)
            ask(since: asked.instant) { () throws(JournalEngineError) in
                heads = try engine.heads(from: position, while: { goesOn(since: asked.instant) })
                answered(asked, end: heads.last?.mark.position)
                try proveOwnEntry()
                handle(.rows(heads))
            }
        case .append(let mark, let entry): append(entry, over: mark)
        case .beginTurn: beginTurn()
        case .endTurn: endTurn()
        case .commit(let mark): commit(mark)
        case .apply(let mark): apply(upTo: mark)
        }
    }

    func ask(since: Instant? = nil, _ question: () throws(JournalEngineError) -> Void) {
        do throws(JournalEngineError) {
            try question()
        } catch {
            awaySince = awaySince ?? since
            lost(error)
        }
    }

    /// Notes that the engine answered a question of that time. `end` is the newest entry, if the answer shows it.
    private func answered(_ asked: Asked, end: UInt64?) {
        let (now, limits, time) = (Asked(environment), limits.journal, engine.time)
        let isClockWrong = environment.journalStatus.withLock { status in
            if let end { status.saw(end: end, at: asked.instantWithSleep) }
            guard let time else { return status.isClockWrong }
            status.clock.note(engine: time, before: asked.time, after: now.time, at: now.instant, limits: limits)
            return status.isClockWrong
        }
        writer.space.clock(isWrong: isClockWrong)
        guard let time else { return }
        environment.timeMax.store((time + limits.clockDifferenceMax).microseconds, ordering: .relaxed)
    }

    /// A moment, by the steady clocks and by the server's.
    private struct Asked {
        let instant = Instant.now
        let instantWithSleep = Instant.nowWithSleep
        let time: Timestamp

        init(_ environment: Environment) { time = environment.configuration.clock.now() }
    }

    func lost(_ error: JournalEngineError) {
        switch error {
        case .connectionLost(let reason):
            environment.journalStatus.withLock { $0.lost(reason) }
            writer.counters.journal.connectionsLost.add()
            uselessConnections += 1
            engine.disconnect()
            handle(.connectionLost)
        case .damaged(let position): end(.journal(.damaged(position: position)))
        case .unusable(let reason): end(.journal(.unusable(reason)))
        }
    }

    /// Tries until there is a connection. An engine whose connections are of no use is away too: a full one takes no
    /// entries, and one whose disk is damaged may not give one out.
    private func connect() {
        if uselessConnections > 1, !pauseBeforeNextTry() { return }
        while true {
            do throws(JournalEngineError) {
                try engine.connect()
                return handle(.connected)
            } catch {
                guard case .connectionLost(let reason) = error else { return lost(error) }
                environment.journalStatus.withLock { $0.lost(reason) }
            }
            guard pauseBeforeNextTry() else { return }
        }
    }

    /// Pauses, and refuses writes if the patience is over. Returns false if the server stops.
    private func pauseBeforeNextTry() -> Bool {
        let since = awaySince ?? .now
        awaySince = since
        if Instant.now >= since.advanced(by: limits.journal.patience) {
            writer.space.journal(isAway: true)
            refuseWaiting()
        }
        isClosing = writer.queue.isClosed
        guard !isClosing else { return false }
        alarm.sleep(until: Instant.now.advanced(by: pause))
        pause = min(pause * 2, .seconds(1))
        return true
    }

    /// The connection was of use: writes have their outcome, the store has come further, or nothing is left to do.
    func isBack() {
        guard uselessConnections > 0 || awaySince != nil else { return }
        (awaySince, uselessConnections, pause) = (nil, 0, Self.pauseMin)
        writer.space.journal(isAway: false)
    }

    private func append(_ entry: JournalAction.Entry, over mark: JournalMark) {
        ask { () throws(JournalEngineError) in
            let appended: JournalMark?
            let asked = Asked(environment)
            switch entry {
            case .empty(let id): appended = try engine.append([], id: id, over: mark)
            case .decided(let id):
                // Proof: the protocol appends what was decided only after `.ran(.changes)`, which needs an entry.
                guard let bytes = self.entry else { preconditionFailure("an entry of nothing") }
                sentID = id
                appended = try engine.append(bytes, id: id, over: mark)
                ownMark = appended
            }
            let counters = writer.counters.journal
            counters.appendDurations.record(nanoseconds: Instant.now.nanoseconds(since: asked.instant))
            answered(asked, end: appended?.position)
            if let appended {
                outruns.end()
                counters.appended.add()
                handle(.appended(appended))
            } else {
                counters.outrun.add()
                handle(.outrun(wantsTurn: isTurnWanted(after: asked.instant)))
            }
        }
    }

    /// A row with the name of decided writes is committed without being applied. So the row is opened here: an answer
    /// was lost, and anybody could have written the row. That the row is there does not show that the engine takes
    /// entries again, for which the callers wait.
    private func proveOwnEntry() throws(JournalEngineError) {
        guard let sentID, let own = heads.firstIndex(where: { $0.batchID == sentID }) else { return }
        guard heads[own].mark != ownMark else { return }
        _ = try engine.entries(for: heads[own...own])
        ownMark = heads[own].mark
    }

    /// Commits the transaction, whose entry has its place in the journal. If the commit fails nevertheless, the process
    /// ends, and the next start makes the entry's changes.
    private func commit(_ mark: JournalMark) {
        // Proof: the protocol commits what was decided, which is in the open transaction until then.
        guard let raw = open else { preconditionFailure("a commit of no transaction") }
        open = nil
        do throws(StoreError) {
            do throws(StoreError) {
                try write(mark, in: raw)
            } catch {
                mdb_txn_abort(raw)
                throw error
            }
            try writer.commit(raw, decided)
            entry = nil
            handle(.stored(mark))
        } catch {
            let unknown = decided
            decided = []
            writer.fail(unknown, .journal(.outcomeUnknown))
            end(error)
        }
    }

    private func write(_ mark: JournalMark, in raw: OpaquePointer) throws(StoreError) {
        try WriteTransaction(raw: raw, environment: environment, batch: writer.batch)
            .setJournalPlace(JournalPlace(clusterID: clusterID, mark: mark))
    }
}

// MARK: - Sleeping

extension JournaledWrites {
    private func sleep() {
        ask { () throws(JournalEngineError) in
            let deadline = writer.isSyncDue ? writer.nextSync : nil
            let hasNews = try engine.wait(for: alarm.readEnd, until: deadline)
            alarm.clear()
            if writer.isSyncDue, Instant.now >= writer.nextSync { writer.sync() }
            if hasNews { handle(.journalGrew) }
        }
    }
}
