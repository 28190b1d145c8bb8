// Both modules declare timespec: which declaration is used depends on the files that are compiled together.
import CThread
import Glibc
import Synchronization

/// Microseconds since 1970-01-01T00:00:00Z, as records, claims and the wire use them.
public struct Timestamp: Sendable, Hashable, Comparable {
    public var microseconds: Int64

    public init(microseconds: Int64) { self.microseconds = microseconds }
    /// Saturates.
    public init(seconds: Int64) { self.microseconds = Int64(clamping: Int128(seconds) * 1_000_000) }

    public static let zero = Timestamp(microseconds: 0)

    /// Whole seconds, rounded down, as a JWT's `iat` and `exp` hold them.
    public var seconds: Int64 {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        return remainder < 0 ? quotient - 1 : quotient
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.microseconds < right.microseconds }

    /// Saturates instead of trapping: a hostile lifetime must not end the process.
    public static func + (left: Timestamp, right: Duration) -> Timestamp {
        Timestamp(microseconds: Int64(clamping: Int128(left.microseconds) + right.allMicroseconds))
    }

    public static func - (left: Timestamp, right: Duration) -> Timestamp {
        Timestamp(microseconds: Int64(clamping: Int128(left.microseconds) - right.allMicroseconds))
    }

    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        let (difference, overflow) = left.microseconds.subtractingReportingOverflow(right.microseconds)
        return .microseconds(overflow ? (left < right ? Int64.min / 2 : Int64.max / 2) : difference)
    }
}

extension Duration {
    /// Whole microseconds, saturated.
    public var microseconds: Int64 { Int64(clamping: allMicroseconds) }

    fileprivate var allMicroseconds: Int128 { attoseconds / 1_000_000_000_000 }

    public static func minutes(_ count: Int64) -> Duration { seconds(count, times: 60) }
    public static func hours(_ count: Int64) -> Duration { seconds(count, times: 3_600) }
    public static func days(_ count: Int64) -> Duration { seconds(count, times: 86_400) }

    /// Saturates.
    private static func seconds(_ count: Int64, times factor: Int128) -> Duration {
        .seconds(Int64(clamping: Int128(count) * factor))
    }
}

/// A source of the present time: the system, or a test.
public struct Clock: Sendable {
    private let read: @Sendable () -> Timestamp

    public init(_ read: @escaping @Sendable () -> Timestamp) { self.read = read }

    public func now() -> Timestamp { read() }

    /// The system's wall clock.
    public static let system = Clock {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(microseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
    }
}

/// The two clocks of a machine: the wall clock, and a clock that counts the time that passes.
///
/// The wall clock can be set, also to a wrong time. The other clock cannot: it only goes forward, also while the
/// machine sleeps.
public struct MachineClocks: Sendable {
    public let wall: Clock
    private let readElapsed: @Sendable () -> Instant

    public init(wall: Clock, elapsed: @escaping @Sendable () -> Instant) {
        self.wall = wall
        self.readElapsed = elapsed
    }

    public func elapsed() -> Instant { readElapsed() }

    public static let system = MachineClocks(wall: .system) { .nowWithSleep }
}

/// The clocks of a machine in a test: they move only when the test moves them.
public final class ManualClock: Sendable {
    private let wallMicroseconds: Atomic<Int64>
    private let elapsedNanoseconds = Atomic<Int64>(1_000_000_000_000)

    public init(startingAt start: Timestamp = Timestamp(seconds: 1_800_000_000)) {
        self.wallMicroseconds = Atomic(start.microseconds)
    }

    public var clock: Clock { Clock { [self] in Timestamp(microseconds: wallMicroseconds.load(ordering: .relaxed)) } }

    public var machine: MachineClocks {
        MachineClocks(wall: clock) { [self] in
            Instant(nanoseconds: elapsedNanoseconds.load(ordering: .relaxed))
        }
    }

    /// Lets time pass, on both clocks.
    public func advance(by duration: Duration) {
        // Proof: for tests, which say how long.
        precondition(duration >= .zero, "time does not pass backwards; step(by:) sets the wall clock")
        elapsedNanoseconds.add(duration.microseconds * 1_000, ordering: .relaxed)
        step(by: duration)
    }

    /// Sets the wall clock, forwards or back. No time passes.
    public func step(by duration: Duration) {
        wallMicroseconds.add(duration.microseconds, ordering: .relaxed)
    }
}

/// A point on the machine's monotonic clock, in nanoseconds: deadlines and durations, never stored.
public struct Instant: Sendable, Hashable, Comparable {
    public var nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    public static var now: Instant { read(CLOCK_MONOTONIC) }

    /// The same, including the time that the machine slept (CLOCK_BOOTTIME); never compared with `now`.
    public static var nowWithSleep: Instant { read(CLOCK_BOOTTIME) }

    private static func read(_ clock: clockid_t) -> Instant {
        var time = timespec()
        clock_gettime(clock, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    public static let distantFuture = Instant(nanoseconds: .max)

    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Saturates, in the far future at `distantFuture`.
    public func advanced(byNanoseconds count: Int64) -> Instant { advanced(by: Int128(count)) }

    public func advanced(by duration: Duration) -> Instant { advanced(by: duration.attoseconds / 1_000_000_000) }

    private func advanced(by count: Int128) -> Instant {
        Instant(nanoseconds: Int64(clamping: Int128(nanoseconds) + count))
    }

    public func nanoseconds(since earlier: Instant) -> Int64 { nanoseconds &- earlier.nanoseconds }
}
