public import Base
public import Reactor
public import Store
import Synchronization

/// Wakes the watches that wait for a commit. Copies of rows are refreshed before that, by `Store.follow`.
///
/// A loop hears of commits once per turn, however many there were, and wakes a few watches per turn, one tenant's after
/// another's. So a tenant that has thousands of streams, and changes all the time what they follow, does not keep the
/// loop from anybody.
public final class ChangeHub: Sendable {
    private let store: Store
    private let loops = Mutex<[ObjectIdentifier: LoopWatches]>([:])
    let watchCount = Atomic<Int>(0)

    public init(of store: Store) {
        self.store = store
        store.listen { [weak self] in self?.announce($0) }
    }

    /// Wakes the watches of `topics`, besides those that a commit announces. Any thread.
    ///
    /// It takes the locks under which a watch is added, always. So a commit whose announcement comes before a watch is
    /// in the snapshots that begin after that watch.
    public func announce(_ topics: [ChangeTopic]) {
        for watches in loops.withLock({ Array($0.values) }) { watches.hear(topics) }
    }

    /// Follows `topics` from now on; the watch is woken in `line`, mostly a tenant's. Call it on `loop` only, outside
    /// of a read, and end the watch there.
    ///
    /// A caller that reads after this call misses nothing: the read sees each commit whose announcement came too early
    /// for the watch. A snapshot that reads of this loop shared (`StoreReader.beginSharing`) ends here. What the caller
    /// read before may be older.
    public func watch(_ topics: [ChangeTopic], in line: Text, on loop: EventLoop) -> Watch {
        let watches = loops.withLock { loops in
            if let known = loops[ObjectIdentifier(loop)] { return known }
            let made = LoopWatches(loop: loop)
            loops[ObjectIdentifier(loop)] = made
            return made
        }
        watchCount.add(1, ordering: .acquiringAndReleasing)
        let watch = Watch(topics: topics, line: line, watches: watches, hub: self)
        watches.add(watch)
        store.readAnew()
        return watch
    }

    fileprivate func ended() { watchCount.subtract(1, ordering: .acquiringAndReleasing) }
}

/// One follower of topics, made and used on one loop.
public final class Watch: @unchecked Sendable {
    // Unchecked: the variables belong to the loop's thread; a cancellation comes from anywhere and touches the promise
    // alone.
    fileprivate let topics: [ChangeTopic]
    fileprivate let line: Text
    fileprivate var isDue = false
    private let watches: LoopWatches
    private let hub: ChangeHub
    private var isPending = false
    private var waiter: Promise<Void>?
    private var deadline: Instant?

    fileprivate init(topics: [ChangeTopic], line: Text, watches: LoopWatches, hub: ChangeHub) {
        self.topics = topics
        self.line = line
        self.watches = watches
        self.hub = hub
    }

    /// Returns when something was announced since the last time this returned, or after `timeout`, to a second. Throws
    /// `CancellationError`.
    public func next(timeout: Duration) async throws {
        precondition(watches.loop.isCurrent, "a watch is used on its own loop")
        if !isPending {
            let waiter = Promise<Void>()
            self.waiter = waiter
            deadline = Instant.now.advanced(by: timeout)
            defer {
                self.waiter = nil
                deadline = nil
            }
            try await waiter.cancellableValue()
        }
        isPending = false
    }

    /// Ends the watch; later announcements do not wake it.
    public func end() {
        watches.remove(self)
        hub.ended()
    }

    fileprivate func wake() {
        isDue = false
        isPending = true
        waiter?.succeed(())
    }

    fileprivate func isLate(at now: Instant) -> Bool { deadline.map { $0 <= now } ?? false }
}

/// The followers on one loop.
private final class LoopWatches: @unchecked Sendable {
    // Unchecked: the variables belong to the loop's thread, `news` is behind its lock.
    let loop: EventLoop

    private struct News {
        /// How many watches follow each topic.
        var followers: [ChangeTopic: Int] = [:]
        /// The announced topics whose watches the loop has not woken yet.
        var topics: Set<ChangeTopic> = []
    }

    /// How many watches one turn of the loop wakes. A woken watch reads the records that it follows, and sends them.
    private static let wakesPerTurn = 16

    private let news = Mutex(News())
    private var watches: [ChangeTopic: [ObjectIdentifier: Watch]] = [:]
    private var all: [ObjectIdentifier: Watch] = [:]
    private var due = FairQueue<Watch>()
    private var isWaking = false
    private var timer: Timer?

    init(loop: EventLoop) { self.loop = loop }

    func add(_ watch: Watch) {
        precondition(loop.isCurrent, "a watch begins on its own loop")
        for topic in watch.topics { watches[topic, default: [:]][ObjectIdentifier(watch)] = watch }
        news.withLock { news in
            for topic in watch.topics { news.followers[topic, default: 0] += 1 }
        }
        all[ObjectIdentifier(watch)] = watch
        if all.count == 1 { startTicking() }
    }

    func remove(_ watch: Watch) {
        precondition(loop.isCurrent, "a watch ends on its own loop")
        all[ObjectIdentifier(watch)] = nil
        for topic in watch.topics {
            watches[topic]?[ObjectIdentifier(watch)] = nil
            if watches[topic]?.isEmpty == true { watches[topic] = nil }
        }
        news.withLock { news in
            for topic in watch.topics {
                let count = (news.followers[topic] ?? 1) - 1
                news.followers[topic] = count == 0 ? nil : count
            }
        }
        if all.isEmpty { timer?.cancel() }
    }

    /// Notes what is followed here of an announcement. Any thread.
    func hear(_ topics: [ChangeTopic]) {
        let isFirst = news.withLock { news in
            let wasEmpty = news.topics.isEmpty
            for topic in topics where news.followers[topic] != nil { news.topics.insert(topic) }
            return wasEmpty && !news.topics.isEmpty
        }
        if isFirst { loop.run { [self] in takeNews() } }
    }

    private func takeNews() {
        let topics = news.withLock { news in
            defer { news.topics.removeAll() }
            return news.topics
        }
        for topic in topics {
            for watch in watches[topic, default: [:]].values { makeDue(watch) }
        }
        if !isWaking { wakeSome() }
    }

    private func makeDue(_ watch: Watch) {
        guard !watch.isDue else { return }
        watch.isDue = true
        due.append(watch, tenant: watch.line)
    }

    /// Once per turn while watches are due, and once more, so that no two calls are of one turn.
    private func wakeSome() {
        isWaking = due.count > 0
        for _ in 0..<Self.wakesPerTurn { due.popFirst()?.wake() }
        if isWaking { loop.run { [self] in wakeSome() } }
    }

    /// Starts the one timer of all watches. They wait for seconds, so no finer time is needed.
    private func startTicking() {
        let timer =
            timer
            ?? Timer(on: loop) { [weak self] in
                guard let self else { return }
                let now = Instant.now
                for watch in all.values where watch.isLate(at: now) { makeDue(watch) }
                // With the loop's calls, which come after its timers: they are of the same turn.
                if due.count > 0, !isWaking { loop.run { [self] in takeNews() } }
                self.timer?.arm(after: .seconds(1))
            }
        self.timer = timer
        timer.arm(after: .seconds(1))
    }
}
