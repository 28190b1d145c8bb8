public import Base

/// Which refused calls are events one by one, and which are only counted: whoever has a credential can be refused a
/// thousand times a second, and events stay. Pure: time comes in.
///
/// A caller has a few events at once, then one in so many minutes; all callers together have a bound as well. An event
/// tells how many calls of its caller were counted since the one before.
public struct DeniedCallRate: Sendable {
    /// What counts as one caller: its id, and the tenant it is bound to.
    public struct Caller: Hashable, Sendable {
        public let id: Text
        /// Nil: all tenants.
        public let tenantID: Text?

        public init(id: Text, tenantID: Text?) {
            self.id = id
            self.tenantID = tenantID
        }
    }

    private struct Entry {
        var bucket: TokenBucket
        var suppressed: Int64 = 0
    }

    private let limits: Limits
    private var entries: [Caller: Entry] = [:]
    private var all: TokenBucket
    /// Calls that nothing tells of, because too many callers were refused at the same time.
    public private(set) var forgotten: Int64 = 0

    public init(limits: Limits, now: Timestamp) {
        self.limits = limits
        self.all = TokenBucket(size: Double(limits.deniedCallsAtOnceInAll), now: now)
    }

    /// How many calls of the caller were only counted before this one, if it is an event; nil if it is counted, too.
    public mutating func admit(_ caller: Caller, now: Timestamp) -> Int64? {
        if entries[caller] == nil, entries.count >= limits.deniedCallersMax {
            forgetIdle(now: now)
            guard entries.count < limits.deniedCallersMax else {
                forgotten += 1
                return nil
            }
        }
        var entry = entries[caller] ?? Entry(bucket: TokenBucket(size: Double(limits.deniedCallsAtOnce), now: now))
        defer { entries[caller] = entry }
        guard take(&entry, now: now) else {
            entry.suppressed += 1
            return nil
        }
        defer { entry.suppressed = 0 }
        return entry.suppressed
    }

    /// The callers whose counted calls can be told of by now, with how many they were.
    public mutating func takeDue(now: Timestamp) -> [(caller: Caller, count: Int64)] {
        var due: [(Caller, Int64)] = []
        for (caller, entry) in entries where entry.suppressed > 0 {
            var entry = entry
            guard take(&entry, now: now) else { continue }
            due.append((caller, entry.suppressed))
            entry.suppressed = 0
            entries[caller] = entry
        }
        forgetIdle(now: now)
        return due
    }

    /// One event. What is added up of fractions may fall short of 1 by a hair.
    private static let whole = 0.999

    /// How much of an event a caller gets back in a second.
    private var perSecond: Double { 1e6 / Double(max(1, limits.deniedCallsEvery.microseconds)) }

    private mutating func take(_ entry: inout Entry, now: Timestamp) -> Bool {
        entry.bucket.refill(perSecond: perSecond, size: Double(limits.deniedCallsAtOnce), now: now)
        all.refill(
            perSecond: Double(limits.deniedCallsPerMinuteInAll) / 60, size: Double(limits.deniedCallsAtOnceInAll),
            now: now)
        guard entry.bucket.level >= Self.whole, all.level >= Self.whole else { return false }
        entry.bucket.spend(1, size: Double(limits.deniedCallsAtOnce))
        all.spend(1, size: Double(limits.deniedCallsAtOnceInAll))
        return true
    }

    /// Forgets callers whose entry says nothing that a new one would not.
    private mutating func forgetIdle(now: Timestamp) {
        let (rate, size) = (perSecond, Double(limits.deniedCallsAtOnce))
        entries = entries.filter { $0.value.suppressed > 0 || $0.value.bucket.isFull(at: rate, size: size) > now }
    }
}
