import Synchronization

/// The only clock of a server: everything that is stamped, searched, refused or deleted by its age uses it.
///
/// The clock counts the time that passes. The machine's wall clock only corrects it; `TimeKeeping` says how. Reading
/// takes no lock. `check` is called every second. Any thread may use the clock.
public final class ServerClock: Sendable {
    private let machine: MachineClocks
    private let keeping: Mutex<TimeKeeping>
    private let startedAt: (elapsed: Instant, time: Timestamp)

    // The line of `keeping` for readers. `version` is odd while it is written; a reader that sees it change reads it
    // again.
    private let version = Atomic<UInt64>(0)
    private let from: Atomic<Int64>
    private let base: Atomic<Int64>
    private let excess: Atomic<Int64>
    private let mayMark = Atomic<Bool>(false)

    /// The wall clock minus the time at the last check, in microseconds.
    public let difference = Gauge()
    public let jumps = Counter()

    /// Makes a clock that follows the wall clock until `begin`.
    public init(_ machine: MachineClocks) {
        self.machine = machine
        let (wall, elapsed) = Self.read(machine)
        let keeping = TimeKeeping(wall: wall, elapsed: elapsed, mark: nil)
        self.keeping = Mutex(keeping)
        self.startedAt = (elapsed, wall)
        self.from = Atomic(keeping.line.from.nanoseconds)
        self.base = Atomic(keeping.line.base.microseconds)
        self.excess = Atomic(keeping.line.excess.microseconds)
    }

    /// Starts the clock over a store with this time mark, before anything is stamped. With `acceptsWall` the operator
    /// says that the wall clock is right, whatever the mark says.
    public func begin(mark: Timestamp?, acceptsWall: Bool = false) -> TimeKeeping.Notice? {
        let (wall, elapsed) = Self.read(machine)
        keeping.withLock { keeping in
            keeping = TimeKeeping(wall: wall, elapsed: elapsed, mark: acceptsWall ? wall : mark)
            publish(keeping)
        }
        noteDifference()
        guard isWrong else { return nil }
        let difference = wall - now()
        return difference > .zero ? .jumpedAhead(by: difference) : .fellBehind(by: .zero - difference)
    }

    public func now() -> Timestamp {
        while true {
            let before = version.load(ordering: .acquiring)
            let line = TimeKeeping.Line(
                from: Instant(nanoseconds: from.load(ordering: .relaxed)),
                base: Timestamp(microseconds: base.load(ordering: .relaxed)),
                excess: .microseconds(excess.load(ordering: .relaxed)))
            atomicMemoryFence(ordering: .acquiring)
            if before & 1 == 0, version.load(ordering: .relaxed) == before { return line.time(at: machine.elapsed()) }
        }
    }

    public var clock: Clock { Clock { [self] in now() } }

    /// A clock for rates and waits within this process. It begins with the time of the start, is never corrected and
    /// never goes back. Nothing that is stored may use it.
    public var steadyClock: Clock {
        Clock { [machine, startedAt] in
            startedAt.time + .nanoseconds(machine.elapsed().nanoseconds(since: startedAt.elapsed))
        }
    }

    /// The time that the store keeps as the highest it has seen. Nil while the clock is not proven yet.
    public var mark: Timestamp? { mayMark.load(ordering: .acquiring) ? now() : nil }

    /// The earliest time that it can be now.
    public var earliest: Timestamp { keeping.withLock { $0.earliest(at: machine.elapsed()) } }

    /// Whether something may be deleted because of its age.
    public var isProven: Bool { keeping.withLock { $0.isProven } }

    /// Whether the machine's wall clock is considered wrong.
    public var isWrong: Bool { keeping.withLock { $0.isWrong } }

    public func hasAgreed(for duration: Duration) -> Bool {
        keeping.withLock { $0.hasAgreed(for: duration, at: machine.elapsed()) }
    }

    /// Compares the time with the wall clock. Returns a notice if something changed.
    public func check() -> TimeKeeping.Notice? {
        let (wall, elapsed) = Self.read(machine)
        let notice = keeping.withLock { keeping in
            let notice = keeping.check(wall: wall, elapsed: elapsed)
            publish(keeping)
            return notice
        }
        switch notice {
        case .jumpedAhead, .fellBehind, .followed: jumps.add()
        case .believed, .agreesAgain, nil: break
        }
        noteDifference()
        return notice
    }

    private func noteDifference() { difference.set((machine.wall.now() - now()).microseconds) }

    /// Under the lock of `keeping`: there is one writer.
    private func publish(_ keeping: TimeKeeping) {
        mayMark.store(keeping.mayMark, ordering: .releasing)
        let line = keeping.line
        version.add(1, ordering: .acquiringAndReleasing)
        atomicMemoryFence(ordering: .releasing)
        from.store(line.from.nanoseconds, ordering: .relaxed)
        base.store(line.base.microseconds, ordering: .relaxed)
        excess.store(line.excess.microseconds, ordering: .relaxed)
        version.add(1, ordering: .releasing)
    }

    /// Both clocks at one moment: read again when the thread was held up in between.
    private static func read(_ machine: MachineClocks) -> (wall: Timestamp, elapsed: Instant) {
        var reading = (wall: machine.wall.now(), elapsed: machine.elapsed())
        for _ in 0..<3 {
            let before = machine.elapsed()
            reading = (machine.wall.now(), machine.elapsed())
            if reading.elapsed.nanoseconds(since: before) < 100_000 { break }
        }
        return reading
    }
}
