import Base
import Messages
import Reactor
import Rules
import Store
import Synchronization

/// Keeps the counts of guesses over a restart, roughly: the last second may be missing.
///
/// Runs on one event loop; `note` on any thread. The notes of a second become one row, under the time and this server's
/// id; a second without notes writes nothing. A row counts for an hour, then the sweep deletes it. A write that fails
/// (a full disk) is counted and logged, and refuses nobody. The same holds for a damaged row: its guesses are forgotten
/// (docs/decisions/0127).
///
/// In a cluster, the rows of the other nodes are counted here as they come to this node's store (`follow`).
actor GuessJournal {
    enum Note: Hashable, Sendable {
        case wrong(Guess)
        case right(Guess)
        case forgiven(account: UInt64, tenant: UInt64)

        /// The hash of the tenant that it is about.
        var tenant: UInt64 {
            switch self {
            case .wrong(let guess), .right(let guess): guess.tenant
            case .forgiven(_, let tenant): tenant
            }
        }
    }

    /// A note, and how often it was made.
    struct Entry: Sendable {
        let time: Timestamp
        let note: Note
        let count: Int
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let resources: Resources
    private let counters: GuessCounters
    /// Tells this server's rows from those of other servers.
    private let serverID: UInt64
    private let pending: Mutex<PendingGuesses<Note>>
    private let news: Mutex<GuessNews>
    private var rowCount: UInt64 = 0
    private var failedAt: Instant?
    private var isStopped = false

    init(resources: Resources, counters: GuessCounters, loop: EventLoop) {
        self.resources = resources
        self.counters = counters
        self.loop = loop
        self.pending = Mutex(PendingGuesses(countMax: resources.limits.guessesKeptPerSecond))
        self.serverID = resources.random.bytes(8).bigEndianNumber
        self.news = Mutex(GuessNews(ownID: serverID, countMax: resources.limits.guessRowsWaitingMax))
    }

    private lazy var timer = Timer(on: loop) { [weak self] in
        self?.assumeIsolated { $0.timerFired() }
    }

    /// Queues a note, which is written within a second. Above `Limits.guessesKeptPerSecond` different notes, notes of
    /// the tenant with the most are dropped.
    nonisolated func note(_ note: Note) {
        let (isFirst, droppedCount) = pending.withLock { $0.add(note, of: note.tenant) }
        if droppedCount > 0 { counters.forgotten.add(UInt64(clamping: droppedCount)) }
        guard isFirst else { return }
        Task(executorPreference: loop) { await self.armTimer() }
    }

    private func armTimer() {
        if !isStopped { timer.arm(after: .seconds(1)) }
    }

    private func timerFired() { Task(executorPreference: loop) { await self.save() } }

    /// Writes the waiting notes, and writes nothing by itself from then on.
    func stop() async {
        isStopped = true
        timer.cancel()
        await save()
    }

    /// Writes the waiting notes.
    func save() async {
        let notes = pending.withLock { pending in
            defer { pending = PendingGuesses(countMax: resources.limits.guessesKeptPerSecond) }
            return pending.all
        }
        guard !notes.isEmpty else { return }
        rowCount += 1
        let key = GuessRowKey(time: resources.clock.now(), serverID: serverID, row: rowCount)
        let row = StoredGuesses(guesses: notes.map { StoredGuess($0.note, count: $0.count) })
        do {
            try await resources.store.write(for: .session) { try $0.put(Tables.guesses, key, row) }
        } catch {
            counters.forgotten.add(UInt64(notes.count))
            complain(error)
        }
    }

    /// Logs at most once a minute, because a disk stays full for longer than a second.
    private func complain(_ error: any Error) {
        let now = Instant.now
        if let failedAt, now.nanoseconds(since: failedAt) < 60_000_000_000 { return }
        failedAt = now
        resources.log.error("guesses were not kept for a restart", ["error": .text("\(error)")])
    }
}

extension GuessJournal {
    /// Calls `count` with the notes of the last hour, ordered by time. From then on it calls `count` with the notes of
    /// other servers as they come to this store, on the writer's thread. Called once.
    nonisolated func follow(_ count: @escaping @Sendable ([Entry]) -> Void) throws {
        resources.store.follow([Tables.guesses.declaration], as: "guesses") { [weak self] announcement in
            guard let self else { return }
            let dropped = self.news.withLock {
                $0.came(announcement.keys(of: Tables.guesses), in: announcement.snapshot)
            }
            if dropped > 0 { self.counters.forgotten.add(UInt64(clamping: dropped)) }
            try self.readNews(count)
        }
        let (found, snapshot) = try resources.store.read { transaction in
            var keys: [GuessRowKey] = []
            let now = resources.clock.now()
            let start = GuessRowKey(time: now - PasswordThrottle.forgottenAfter, serverID: 0, row: 0)
            try transaction.scanKeys(of: Tables.guesses, from: .at(start)) { key in
                keys.append(key)
                return true
            }
            return (try transaction.guesses(under: keys, now: now), transaction.snapshot)
        }
        noteDamaged(found.damagedCount)
        count(found.entries)
        news.withLock { $0.started(in: snapshot) }
        try readNews(count)
    }

    /// Rows that cannot be read now are read with the next news.
    private nonisolated func readNews(_ count: ([Entry]) -> Void) throws {
        let keys = news.withLock { $0.take() }
        let now = resources.clock.now()
        let wanted = keys.filter { $0.time >= now - PasswordThrottle.forgottenAfter }
        guard !wanted.isEmpty else { return }
        do {
            let found = try resources.store.read { try $0.guesses(under: wanted, now: now) }
            noteDamaged(found.damagedCount)
            count(found.entries)
        } catch {
            let dropped = news.withLock { $0.giveBack(wanted) }
            counters.forgotten.add(UInt64(clamping: dropped))
            throw error
        }
    }

    private nonisolated func noteDamaged(_ rowCount: Int) {
        guard rowCount > 0 else { return }
        counters.forgotten.add(UInt64(clamping: rowCount))
        resources.log.error(
            "damaged rows of guesses count for nothing; posternd --verify-store tells more",
            ["rows": .integer(Int64(clamping: rowCount))])
    }
}

/// The notes of some rows, and how many of the rows are damaged.
private struct ReadGuesses {
    var entries: [GuessJournal.Entry] = []
    var damagedCount = 0
}

extension ReadTransaction {
    /// A row that a sweep has deleted counts for nothing. So does a damaged row.
    fileprivate func guesses(under keys: [GuessRowKey], now: Timestamp) throws -> ReadGuesses {
        var found = ReadGuesses()
        for key in keys {
            do {
                guard let row = try get(Tables.guesses, key) else { continue }
                found.entries += row.entries(at: key.time, now: now)
            } catch StoreError.corrupt {
                found.damagedCount += 1
            }
        }
        return found
    }
}

extension StoredGuesses {
    /// Notes from the future count as made now: a clock that was set back must not make them forgotten.
    fileprivate func entries(at time: Timestamp, now: Timestamp) -> [GuessJournal.Entry] {
        guesses.compactMap { guess in
            // A million is more than any budget holds, and sums of it are far from overflowing.
            guess.note.map {
                GuessJournal.Entry(time: min(now, time), note: $0, count: Int(min(max(1, guess.count), 1_000_000)))
            }
        }
    }
}

extension WriteTransaction {
    /// Deletes up to `limit` rows that count for nothing any more; returns whether there may be more. Rows more than an
    /// hour in the future are deleted as well: they were noted under a wrong clock, and would count at every start
    /// until then.
    func forgetGuesses(now: Timestamp, limit: Int) throws -> Bool {
        let (start, end) = (now - PasswordThrottle.forgottenAfter, now + PasswordThrottle.forgottenAfter)
        var old: [GuessRowKey] = []
        // A damaged row goes like the others: it counts for nothing.
        try reading.scanKeys(of: Tables.guesses) { key in
            guard old.count < limit, key.time < start else { return false }
            old.append(key)
            return true
        }
        try reading.scanKeys(of: Tables.guesses, reversed: true) { key in
            guard old.count < limit, key.time > end else { return false }
            old.append(key)
            return true
        }
        for key in old { try delete(Tables.guesses, key) }
        return old.count == limit
    }
}

extension StoredGuess {
    fileprivate init(_ note: GuessJournal.Note, count: Int) {
        switch note {
        case .wrong(let guess): self.init(guess, .wrong, count)
        case .right(let guess): self.init(guess, .right, count)
        case .forgiven(let account, let tenant):
            self.init(outcome: .forgiven, account: account, tenant: tenant, count: Int64(count))
        }
    }

    private init(_ guess: Guess, _ outcome: GuessOutcome, _ count: Int) {
        self.init(
            outcome: outcome, isProbe: guess.kind == .probe, account: guess.account, source: guess.source,
            isKnown: guess.isKnown, address: guess.address, tenant: guess.tenant, caller: guess.caller,
            count: Int64(count))
    }

    /// Nil for a kind that a newer server wrote.
    fileprivate var note: GuessJournal.Note? {
        let guess = Guess(
            kind: isProbe ? .probe : .password, account: account, source: source, isKnown: isKnown, address: address,
            tenant: tenant, caller: caller)
        switch outcome {
        case .unspecified: return nil
        case .wrong: return .wrong(guess)
        case .right: return .right(guess)
        case .forgiven: return .forgiven(account: account, tenant: tenant)
        }
    }
}
