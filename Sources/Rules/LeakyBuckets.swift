public import Base

/// The recent spending of many sources. Pure: the time is passed in, no clock, no lock.
///
/// A bucket holds a number of units and leaks evenly: with 30 units an hour, one every two minutes. So nobody waits
/// longer than one unit takes to leak, and a quiet source is forgotten after an hour. A refused attempt costs nothing.
/// There are at most `bucketsMax` buckets; `Eviction` says which are removed first.
public struct LeakyBuckets: Sendable {
    public struct Rate: Sendable, Equatable {
        public let capacity: Int
        /// The time one unit takes to leak.
        let interval: Duration

        public init(capacity: Int, perHour: Int) {
            // Above a million the time to leak would not fit in the numbers that hold it.
            self.capacity = min(max(1, capacity), 1_000_000)
            self.interval = .microseconds(3_600_000_000 / Int64(max(1, perHour)))
        }
    }

    private struct Bucket {
        /// How long the bucket takes to become empty, in microseconds.
        var fill: Int64
        var lastAt: Timestamp
        /// The time that half of its capacity takes to leak.
        let halfFill: Int64
        /// The tenant whose sources filled the bucket first.
        let tenant: UInt64

        func fill(now: Timestamp) -> Int64 {
            let passed = max(0, (now - lastAt).microseconds)
            return passed >= fill ? 0 : fill - passed
        }
    }

    private var buckets: [UInt64: Bucket] = [:]
    private let bucketsMax: Int

    public init(bucketsMax: Int = 50_000) { self.bucketsMax = bucketsMax }

    /// Spends one unit; nil when it fits, or else how long until it would.
    public mutating func spend(_ key: UInt64, _ rate: Rate, of tenant: UInt64 = 0, now: Timestamp) -> Duration? {
        if let wait = wait(key, rate, now: now) { return wait }
        charge(key, rate, 1, of: tenant, now: now)
        return nil
    }

    /// How long until one more unit fits; nil when it fits now. Spends nothing.
    public func wait(_ key: UInt64, _ rate: Rate, now: Timestamp) -> Duration? {
        let excess = fill(key, now: now) + rate.interval.microseconds - Self.brim(rate)
        return excess > 0 ? .microseconds(excess) : nil
    }

    /// Spends units whether they fit or not; a bucket never holds more than a quarter above its capacity.
    public mutating func charge(_ key: UInt64, _ rate: Rate, _ count: Int, of tenant: UInt64 = 0, now: Timestamp) {
        if buckets.count >= bucketsMax, buckets[key] == nil { makeRoom(now: now) }
        let highest = Self.brim(rate) + Self.brim(rate) / 4
        let added = rate.interval.microseconds * Int64(max(0, min(count, 2 * rate.capacity)))
        buckets[key] = Bucket(
            fill: min(fill(key, now: now) + added, highest), lastAt: now, halfFill: Self.brim(rate) / 2,
            tenant: buckets[key]?.tenant ?? tenant)
    }

    /// Charges units that were spent elsewhere, a while ago. They count as spent no earlier than the last charge, or
    /// else the bucket would leak twice for the same time.
    public mutating func add(_ key: UInt64, _ rate: Rate, _ count: Int, of tenant: UInt64 = 0, at time: Timestamp) {
        charge(key, rate, count, of: tenant, now: max(time, buckets[key]?.lastAt ?? time))
    }

    /// Gives back a unit that was charged for an attempt that does not count.
    public mutating func giveBack(_ key: UInt64, _ rate: Rate) {
        guard var bucket = buckets[key] else { return }
        bucket.fill -= rate.interval.microseconds
        buckets[key] = bucket.fill > 0 ? bucket : nil
    }

    /// How many units the bucket holds; a part of one counts as a whole.
    public func level(_ key: UInt64, _ rate: Rate, now: Timestamp) -> Int {
        let interval = max(1, rate.interval.microseconds)
        return Int((fill(key, now: now) + interval - 1) / interval)
    }

    /// How far the bucket is beyond its capacity: 0 when it is not, 1 at the highest.
    public func overflow(_ key: UInt64, _ rate: Rate, now: Timestamp) -> Double {
        let over = fill(key, now: now) - Self.brim(rate)
        return over <= 0 ? 0 : min(1, Double(over) / Double(max(1, Self.brim(rate) / 4)))
    }

    /// After the clock went back nothing leaks, and nobody waits until it is where it was.
    private func fill(_ key: UInt64, now: Timestamp) -> Int64 {
        buckets[key]?.fill(now: now) ?? 0
    }

    /// The capacity in microseconds of leaking.
    private static func brim(_ rate: Rate) -> Int64 { rate.interval.microseconds * Int64(rate.capacity) }

    private mutating func makeRoom(now: Timestamp) {
        buckets.evict {
            .init(tenant: $0.tenant, isStrict: $0.fill(now: now) > $0.halfFill, lastAt: $0.lastAt)
        }
    }
}
