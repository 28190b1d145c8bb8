public import Base

/// Decides which refused calls become events one by one, and which are only counted: a caller can be refused a thousand
/// times a second, and events stay. Pure: the time is passed in.
///
/// A caller has a few events at once, then one every few minutes; all callers together have a bound as well. An event
/// tells how many calls of its caller were counted since the previous event.
public struct DeniedCallRate: Sendable {
    /// The key of one caller: its id, and the tenant that it is bound to.
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
    /// Calls that no event counts, because too many callers were refused at the same time.
    public private(set) var forgotten: Int64 = 0
    /// When idle callers were last looked for. A look at all of them is too dear for each refused call.
    private var lookedForIdleAt: Timestamp?

    public init(limits: Limits, now: Timestamp) {
        self.limits = limits
        self.all = TokenBucket(size: Double(limits.deniedCallsAtOnceInAll), now: now)
    }

    /// How many calls of the caller were only counted before this one, if this call becomes an event; nil if this call
    /// is only counted, too.
    public mutating func admit(_ caller: Caller, now: Timestamp) -> Int64? {
        if entries[caller] == nil, entries.count >= limits.deniedCallersMax {
            let isLookDue = lookedForIdleAt.map { now < $0 || now >= $0 + Self.idleLookInterval } ?? true
            if isLookDue { forgetIdle(now: now) }
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

    /// The callers whose counted calls may become an event by now, with the number of calls.
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

    private static let idleLookInterval = Duration.seconds(1)

    /// One event. A sum of fractions may be slightly less than 1.
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

    /// Forgets callers whose entry equals a new one.
    private mutating func forgetIdle(now: Timestamp) {
        lookedForIdleAt = now
        let (rate, size) = (perSecond, Double(limits.deniedCallsAtOnce))
        entries = entries.filter { $0.value.suppressed > 0 || $0.value.bucket.isFull(at: rate, size: size) > now }
    }
}
