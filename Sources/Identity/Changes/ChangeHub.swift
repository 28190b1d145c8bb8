import Base
public import Reactor
public import Store
import Synchronization

/// Wakes the watches that wait for a commit. This takes one call on the writer's thread and one turn of each loop that
/// has watches, however many there are. Copies of rows are refreshed before that, by `Store.follow`.
public final class ChangeHub: Sendable {
    private let loops = Mutex<[ObjectIdentifier: LoopWatches]>([:])
    let watchCount = Atomic<Int>(0)

    public init(of store: Store) {
        store.listen { [weak self] in self?.announce($0) }
    }

    /// Wakes the watches of `topics`, besides those that a commit announces. Any thread.
    public func announce(_ topics: [ChangeTopic]) {
        guard watchCount.load(ordering: .acquiring) > 0 else { return }
        let concerned = loops.withLock { loops in loops.values.filter { $0.follows(topics) } }
        for watches in concerned { watches.loop.run { watches.fire(topics) } }
    }

    /// Follows `topics` from now on. A caller that reads after this call misses nothing. Call it on `loop` only, and
    /// end the watch there.
    public func watch(_ topics: [ChangeTopic], on loop: EventLoop) -> Watch {
        let watches = loops.withLock { loops in
            if let known = loops[ObjectIdentifier(loop)] { return known }
            let made = LoopWatches(loop: loop)
            loops[ObjectIdentifier(loop)] = made
            return made
        }
        watchCount.add(1, ordering: .acquiringAndReleasing)
        let watch = Watch(topics: topics, watches: watches, hub: self)
        watches.add(watch)
        return watch
    }

    fileprivate func ended() { watchCount.subtract(1, ordering: .acquiringAndReleasing) }
}

/// One follower of topics, made and used on one loop.
public final class Watch: @unchecked Sendable {
    // Unchecked: the variables belong to the loop's thread; a cancellation comes from anywhere and touches the promise
    // alone.
    fileprivate let topics: [ChangeTopic]
    private let watches: LoopWatches
    private let hub: ChangeHub
    private var isPending = false
    private var waiter: Promise<Void>?
    private var deadline: Instant?

    fileprivate init(topics: [ChangeTopic], watches: LoopWatches, hub: ChangeHub) {
        self.topics = topics
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

    fileprivate func fire() {
        isPending = true
        waiter?.succeed(())
    }

    fileprivate func checkTime(now: Instant) {
        guard let deadline, deadline <= now else { return }
        waiter?.succeed(())
    }
}

/// The followers on one loop.
private final class LoopWatches: @unchecked Sendable {
    // Unchecked: the variables belong to the loop's thread, `counts` is behind its lock.
    let loop: EventLoop
    private let counts = Mutex<[ChangeTopic: Int]>([:])
    private var watches: [ChangeTopic: [ObjectIdentifier: Watch]] = [:]
    private var all: [ObjectIdentifier: Watch] = [:]
    private var timer: Timer?

    init(loop: EventLoop) { self.loop = loop }

    func follows(_ topics: [ChangeTopic]) -> Bool {
        counts.withLock { counts in topics.contains { counts[$0] != nil } }
    }

    func add(_ watch: Watch) {
        precondition(loop.isCurrent, "a watch begins on its own loop")
        for topic in watch.topics { watches[topic, default: [:]][ObjectIdentifier(watch)] = watch }
        counts.withLock { counts in
            for topic in watch.topics { counts[topic, default: 0] += 1 }
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
        counts.withLock { counts in
            for topic in watch.topics {
                let count = (counts[topic] ?? 1) - 1
                counts[topic] = count == 0 ? nil : count
            }
        }
        if all.isEmpty { timer?.cancel() }
    }

    func fire(_ topics: [ChangeTopic]) {
        for topic in topics {
            for watch in watches[topic, default: [:]].values { watch.fire() }
        }
    }

    /// Starts the one timer of all watches. They wait for seconds, so no finer time is needed.
    private func startTicking() {
        let timer =
            timer
            ?? Timer(on: loop) { [weak self] in
                guard let self else { return }
                let now = Instant.now
                for watch in all.values { watch.checkTime(now: now) }
                self.timer?.arm(after: .seconds(1))
            }
        self.timer = timer
        timer.arm(after: .seconds(1))
    }
}
