public import Base
import CEvent
import Glibc
import Synchronization

/// An object that is called once when the loop's turn ends, for example a connection with unsent output.
public protocol EndOfTurn: AnyObject {
    /// Called on the loop's thread.
    func turnEnded()
}

/// One thread, one libevent base, one serial executor: jobs pinned to a loop run on its thread, one at a time.
///
/// A turn is: socket events, timers and signals; at most `jobsPerTurn` jobs, and for `jobsTimeMax`, in the order they
/// were enqueued; the end-of-turn calls. An actor joins a loop by keeping it (`nonisolated let loop`) and returning
/// `loop.asUnownedSerialExecutor()` as its `unownedExecutor`; callbacks enter it by `assumeIsolated`. Priorities of
/// tasks are ignored. Never block on a loop.
///
/// It is a task executor too: start tasks with `Task.immediate(executorPreference: loop)`. Without the preference, the
/// runtime resumes every continuation (a `Promise`, `Task.value`) on Swift's own pool, which then hops to the loop.
/// That costs two thread wake-ups of several microseconds each, instead of a job of the loop itself.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    // Unchecked: the `var`s and the base are touched only by the loop's thread while it runs, and by the loop's owner
    // before `start()` or after `join()` (`checkOwner`); pthread_create(3) and pthread_join(3) order the three.

    private struct Inbox {
        var jobs: [UnownedJob] = []
        var calls: [@Sendable () -> Void] = []
        var isAsleep = false
        var isStopping = false

        /// Whether the caller must write to the eventfd: once per sleep.
        mutating func shouldWake() -> Bool {
            defer { isAsleep = false }
            return isAsleep
        }
    }

    private enum State: UInt8 {
        /// Next: `running`.
        case idle
        /// Next: `ended`.
        case running
        case ended
    }

    /// A bound on the jobs of one turn, so that jobs that enqueue jobs do not keep sockets and timers waiting; and on
    /// their time, of which every eighth job reads the clock.
    static let jobsPerTurn = 256
    static let jobsTimeMax = Duration.milliseconds(5)
    /// How many turns a stopped loop still runs its queue. Jobs that are still enqueued after that are never run.
    static let turnsAfterStopMax = 1_024

    public let name: String
    /// The loop's place in its group; 0 for a loop without one.
    public let number: Int
    /// The number of connections of the loop: `EventLoopGroup.next()` adds one, and the code that closes a connection
    /// subtracts one.
    public let connections = Gauge()

    private let inbox = Mutex(Inbox())
    private let state = Atomic(State.idle.rawValue)
    private let threadID = Atomic<UInt>(0)
    private let thread: Mutex<OSThread?> = Mutex(nil)

    let base: OpaquePointer
    private let wakeup: Int32
    private let wakeupEvent: UnsafeMutablePointer<event>
    private var jobs = JobQueue()
    private var takenJobs: [UnownedJob] = []
    private var ending: [any EndOfTurn] = []
    private var endingNow: [any EndOfTurn] = []
    private let heldWakeups = HeldWakeups()

    public init(name: String, number: Int = 0) {
        _ = quietLibevent
        let configuration = event_config_new()!
        // NOLOCK: a base belongs to one thread. No EPOLL_USE_CHANGELIST: it saves nothing where interest seldom
        // changes, and event.h forbids it together with dup(2).
        event_config_set_flag(configuration, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        event_config_set_flag(configuration, Int32(EVENT_BASE_FLAG_IGNORE_ENV.rawValue))
        guard let base = event_base_new_with_config(configuration) else {
            preconditionFailure("event_base_new failed: errno \(errno)")
        }
        event_config_free(configuration)
        self.name = name
        self.number = number
        self.base = base
        self.wakeup = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        precondition(wakeup >= 0, "eventfd failed: errno \(errno)")
        self.wakeupEvent = .allocate(capacity: 1)
        // Edge-triggered: every write is an edge of its own, so that the counter need not be read.
        let interest = Int16(EV_READ) | Int16(EV_PERSIST) | Int16(EV_ET)
        event_assign(wakeupEvent, base, wakeup, interest, { _, _, _ in }, nil)
        event_add(wakeupEvent, nil)
    }

    deinit {
        precondition(state.load(ordering: .acquiring) != State.running.rawValue, "\(name) was dropped while it runs")
        event_del(wakeupEvent)
        wakeupEvent.deallocate()
        event_base_free(base)
        close(wakeup)
    }

    /// Whether the caller is on the loop's thread.
    public var isCurrent: Bool { threadID.load(ordering: .relaxed) == pthread_self() }

    // MARK: Executor

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isCurrent {
            jobs.append(job)
            return
        }
        if let held = HeldWakeups.current {
            inbox.withLock { $0.jobs.append(job) }
            held.add(self)
        } else {
            fillInbox { $0.jobs.append(job) }
        }
    }

    /// Changes the inbox, and wakes the loop if it sleeps. From any thread.
    @inline(__always)
    private func fillInbox(_ change: (inout Inbox) -> Void) {
        let mustWake = inbox.withLock { inbox in
            change(&inbox)
            return inbox.shouldWake()
        }
        if mustWake { wake() }
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    public func checkIsolated() { precondition(isCurrent, "not on \(name)") }

    // MARK: Entry points

    /// Starts the thread. A loop starts once.
    public func start() {
        let (isFirst, _) = state.compareExchange(
            expected: State.idle.rawValue, desired: State.running.rawValue, ordering: .acquiringAndReleasing)
        precondition(isFirst, "\(name) was started twice")
        let thread = OSThread(name: name) { [self] in
            ThreadPriority.takeShortTurns()
            turnUntilStopped()
        }
        self.thread.withLock { $0 = thread }
    }

    /// Asks the loop to run the queued jobs and to end; returns at once. From any thread.
    ///
    /// Jobs that are enqueued after the end are never run: a forced shutdown may leave late answers behind. Sockets and
    /// timers are no longer served; their owners cancel them before, or after `join()`.
    public func stop() { fillInbox { $0.isStopping = true } }

    /// Waits for the end that `stop()` asked for.
    @available(*, noasync, message: "blocks the thread")
    public func join() {
        precondition(!isCurrent, "\(name) cannot join itself")
        thread.withLock { $0.take() }?.join()
    }

    /// Calls `body` on the loop, in the order of the calls. From any thread, also before `start()`.
    ///
    /// It allocates: for set-up and rare hand-overs; everything else is an actor.
    public func run(_ body: @escaping @Sendable () -> Void) { fillInbox { $0.calls.append(body) } }

    /// Calls `flushable.turnEnded()` when this turn ends; on the loop only.
    ///
    /// An object that is added twice is called twice: the caller keeps its own "is dirty" flag. An object that is added
    /// during those calls is called at the end of the next turn, which follows at once.
    public func atEndOfTurn(_ flushable: any EndOfTurn) {
        precondition(isCurrent, "not on \(name)")
        ending.append(flushable)
    }

    /// On the loop's thread, or while no thread runs the loop.
    public var mayTouchBase: Bool { isCurrent || state.load(ordering: .acquiring) != State.running.rawValue }

    /// Traps if `mayTouchBase` is false.
    public func checkOwner() { precondition(mayTouchBase, "not on \(name)") }

    // MARK: The turn

    private func turnUntilStopped() {
        threadID.store(pthread_self(), ordering: .relaxed)
        var turnsAfterStop = 0
        while true {
            let flags = fallAsleep() ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK
            let code = event_base_loop(base, flags)
            precondition(code == 0, "event_base_loop of \(name) returned \(code), errno \(errno)")
            let isStopping = takeInbox()
            runJobs()
            endTurn()
            guard isStopping else { continue }
            turnsAfterStop += 1
            if isIdle || turnsAfterStop == Self.turnsAfterStopMax { break }
        }
        threadID.store(0, ordering: .relaxed)
        state.store(State.ended.rawValue, ordering: .releasing)
    }

    /// Returns true if there is nothing to do. From then on, threads that fill the inbox write to the eventfd.
    private func fallAsleep() -> Bool {
        guard jobs.isEmpty && ending.isEmpty else { return false }
        return inbox.withLock { inbox in
            guard inbox.jobs.isEmpty && inbox.calls.isEmpty && !inbox.isStopping else { return false }
            inbox.isAsleep = true
            return true
        }
    }

    private var isIdle: Bool {
        jobs.isEmpty && ending.isEmpty && inbox.withLock { $0.jobs.isEmpty && $0.calls.isEmpty }
    }

    /// Moves the jobs of other threads after those that wait here, and runs the calls. Returns whether to stop.
    private func takeInbox() -> Bool {
        let (calls, isStopping) = inbox.withLock { inbox in
            inbox.isAsleep = false
            swap(&inbox.jobs, &takenJobs)
            defer { if !inbox.calls.isEmpty { inbox.calls = [] } }
            return (inbox.calls, inbox.isStopping)
        }
        if !takenJobs.isEmpty {
            jobs.append(contentsOf: takenJobs)
            takenJobs.removeAll(keepingCapacity: true)
        }
        for call in calls { call() }
        return isStopping
    }

    private func runJobs() {
        // Both executors, as SE-0417 requires: then a task that prefers the loop awaits the loop's actors inline.
        let serialExecutor = asUnownedSerialExecutor()
        let taskExecutor = asUnownedTaskExecutor()
        var count = 0
        var end: Instant?
        heldWakeups.begin()
        defer { heldWakeups.end() }
        while count < Self.jobsPerTurn, let job = jobs.popFirst() {
            job.runSynchronously(isolatedTo: serialExecutor, taskExecutor: taskExecutor)
            count += 1
            guard count & 7 == 0 else { continue }
            heldWakeups.give()
            if let end {
                if Instant.now >= end { break }
            } else {
                end = .now.advanced(by: Self.jobsTimeMax)
            }
        }
    }

    private func endTurn() {
        guard !ending.isEmpty else { return }
        swap(&ending, &endingNow)
        for flushable in endingNow { flushable.turnEnded() }
        endingNow.removeAll(keepingCapacity: true)
    }

    private func wake() {
        var one: UInt64 = 1
        // Cannot fail: the counter would have to reach 2^64 - 1 (eventfd(2)).
        _ = write(wakeup, &one, 8)
    }
}

extension EventLoop: Sleeper {
    public func wakeIfNeeded() { fillInbox { _ in } }
}

/// Drops libevent's warnings, which it would write to standard error: a peer can provoke some of them, and each also
/// reaches us as a return code or a closed connection. Errors that end libevent are printed.
private let quietLibevent: Void = event_set_log_callback { severity, message in
    guard severity >= EVENT_LOG_ERR, let message else { return }
    _ = write(STDERR_FILENO, message, strlen(message))
}
