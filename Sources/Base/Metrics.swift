import Synchronization

/// A number that only grows. Reads and writes are relaxed: they order nothing else.
public final class Counter: Sendable {
    private let storage = Atomic<UInt64>(0)

    public init() {}

    public func add(_ amount: UInt64 = 1) { storage.add(amount, ordering: .relaxed) }
    public var value: UInt64 { storage.load(ordering: .relaxed) }
}

/// A number that goes up and down.
public final class Gauge: Sendable {
    private let storage = Atomic<Int64>(0)

    public init() {}

    public func add(_ amount: Int64) { storage.add(amount, ordering: .relaxed) }
    public func set(_ value: Int64) { storage.store(value, ordering: .relaxed) }
    public var value: Int64 { storage.load(ordering: .relaxed) }
}

/// Durations in the buckets of gRPC's proposal A66, from 10 µs on: OpenTelemetry's own begin at 5 ms, which is above
/// most of our calls.
public final class DurationHistogram: Sendable {
    public static let boundsMicroseconds: [Int64] = [
        10, 50, 100, 300, 600, 800, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 13_000, 16_000, 20_000,
        25_000,
        30_000, 40_000, 50_000, 65_000, 80_000, 100_000, 130_000, 160_000, 200_000, 250_000, 300_000, 400_000, 500_000,
        650_000, 800_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000,
    ]

    /// The counts that were recorded up to one moment.
    public struct Snapshot: Sendable {
        /// The count up to each bound. The last one counts all durations (`+Inf`).
        public var cumulativeCounts = [UInt64](repeating: 0, count: boundsMicroseconds.count + 1)
        public var sumSeconds = 0.0

        public init() {}

        public mutating func add(_ other: Snapshot) {
            for index in cumulativeCounts.indices { cumulativeCounts[index] &+= other.cumulativeCounts[index] }
            sumSeconds += other.sumSeconds
        }
    }

    private let counts = DurationCounts()

    public init() {}

    public func record(nanoseconds: Int64) { counts.record(nanoseconds: nanoseconds) }

    public var snapshot: Snapshot { counts.snapshot }
}

/// The counts of a `DurationHistogram`, for an object that holds them among others. Any thread.
public struct DurationCounts: ~Copyable, Sendable {
    private let buckets: InlineArray<41, Atomic<UInt64>>
    private let sumNanoseconds = Atomic<UInt64>(0)

    public init() {
        self.buckets = InlineArray { _ in Atomic(0) }
        // Proof: both are constants of the code.
        precondition(
            buckets.count == DurationHistogram.boundsMicroseconds.count + 1, "a bucket per bound, and one above them")
    }

    public borrowing func record(nanoseconds: Int64) {
        let microseconds = max(0, nanoseconds) / 1_000
        // From below: most calls belong into the first buckets.
        var bucket = 0
        while bucket < buckets.count - 1, DurationHistogram.boundsMicroseconds[bucket] < microseconds { bucket += 1 }
        buckets[bucket].add(1, ordering: .relaxed)
        sumNanoseconds.add(UInt64(max(0, nanoseconds)), ordering: .relaxed)
    }

    public var snapshot: DurationHistogram.Snapshot {
        var total: UInt64 = 0
        var snapshot = DurationHistogram.Snapshot()
        for index in buckets.indices {
            total += buckets[index].load(ordering: .relaxed)
            snapshot.cumulativeCounts[index] = total
        }
        snapshot.sumSeconds = Double(sumNanoseconds.load(ordering: .relaxed)) / 1e9
        return snapshot
    }
}
