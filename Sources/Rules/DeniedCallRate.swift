public import Base

/// Decides which refused calls become events one by one, and which are only counted: a caller can be refused a thousand
/// times a second, and events stay. Pure: the time is passed in.
///
/// A caller has a few events at once, then one every few minutes; all callers together have a bound as well. An event
/// tells how many calls of its caller were counted since the previous event.
///
/// A tenant's admins make keys as they like, so tenants share both bounds. A tenant spends events only while it owes
/// fewer than are left for all, so that some are always left for others; and the tenant with the most callers in the
/// table gives places up for others.
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

    /// The callers that are bound to one tenant, or to none.
    private struct Group {
        var entries: [Text: Entry] = [:]
        var bucket: TokenBucket
    }

    private let limits: Limits
    private var groups: [Text?: Group] = [:]
    private var places: TenantShares<Text?>
    /// The bucket of all callers together.
    private var shared: TokenBucket
    /// Calls that no event counts, because too many callers were refused at the same time.
    public private(set) var forgotten: Int64 = 0
    /// When idle callers were last looked for. A look at all of them is too dear for each refused call.
    private var lookedForIdleAt: Timestamp?

    public init(limits: Limits, now: Timestamp) {
        self.limits = limits
        self.places = TenantShares(countMax: limits.deniedCallersMax)
        self.shared = TokenBucket(size: Double(limits.deniedCallsAtOnceInAll), now: now)
    }

    /// How many calls of the caller were only counted before this one, if this call becomes an event; nil if this call
    /// is only counted, too.
    public mutating func admit(_ caller: Caller, now: Timestamp) -> Int64? {
        let tenant = caller.tenantID
        if groups[tenant]?.entries[caller.id] == nil {
            guard makeRoom(for: tenant, now: now) else {
                forgotten += 1
                return nil
            }
            places.entered(tenant)
        }
        // Taken out, so that its table is not copied.
        var group =
            groups.removeValue(forKey: tenant)
            ?? Group(bucket: TokenBucket(size: Double(limits.deniedCallsAtOnceInAll), now: now))
        var entry =
            group.entries[caller.id] ?? Entry(bucket: TokenBucket(size: Double(limits.deniedCallsAtOnce), now: now))
        defer {
            group.entries[caller.id] = entry
            groups[tenant] = group
        }
        guard spendEvent(&entry.bucket, &group.bucket, of: tenant, now: now) else {
            entry.suppressed += 1
            return nil
        }
        defer { entry.suppressed = 0 }
        return entry.suppressed
    }

    private mutating func makeRoom(for tenant: Text?, now: Timestamp) -> Bool {
        if places.verdict(for: tenant) == .hasRoom { return true }
        let isLookDue = lookedForIdleAt.map { now < $0 || now >= $0 + Self.idleLookInterval } ?? true
        if isLookDue { forgetIdle(now: now) }
        switch places.verdict(for: tenant) {
        case .hasRoom: return true
        case .refused: return false
        case .takes(let other):
            guard let id = groups[other]?.entries.keys.first else { return false }
            forgotten += groups[other]?.entries.removeValue(forKey: id)?.suppressed ?? 0
            places.left(other)
            return true
        }
    }

    /// The callers whose counted calls may become an event by now, with the number of calls.
    public mutating func takeDue(now: Timestamp) -> [(caller: Caller, count: Int64)] {
        var due: [(Caller, Int64)] = []
        for (tenant, group) in groups {
            var group = group
            for (id, entry) in group.entries where entry.suppressed > 0 {
                var entry = entry
                guard spendEvent(&entry.bucket, &group.bucket, of: tenant, now: now) else { continue }
                due.append((Caller(id: id, tenantID: tenant), entry.suppressed))
                entry.suppressed = 0
                group.entries[id] = entry
            }
            groups[tenant] = group
        }
        forgetIdle(now: now)
        return due
    }

    private static let idleLookInterval = Duration.seconds(1)

    /// The level from which a bucket admits one event. A sum of fractions may be slightly less than 1.
    private static let levelOfOneEvent = 0.999

    /// How much of an event a caller gets back in a second.
    private var perSecond: Double { 1e6 / Double(max(1, limits.deniedCallsEvery.microseconds)) }

    /// Spends one event of the caller's bucket, of its tenant's and of the shared one. Returns false, and spends
    /// nothing, if one of them has too little left. `tenant` is nil for callers of all tenants: only a project-admin
    /// makes such callers, and their share is not bounded.
    private mutating func spendEvent(
        _ ofCaller: inout TokenBucket, _ ofTenant: inout TokenBucket, of tenant: Text?, now: Timestamp
    ) -> Bool {
        ofCaller.refill(perSecond: perSecond, size: Double(limits.deniedCallsAtOnce), now: now)
        let (rate, size) = (ratePerSecondInAll, Double(limits.deniedCallsAtOnceInAll))
        shared.refill(perSecond: rate, size: size, now: now)
        ofTenant.refill(perSecond: rate, size: size, now: now)
        guard min(ofCaller.level, shared.level) >= Self.levelOfOneEvent else { return false }
        guard tenant == nil || size - ofTenant.level < shared.level else { return false }
        ofCaller.spend(1, size: Double(limits.deniedCallsAtOnce))
        shared.spend(1, size: size)
        ofTenant.spend(1, size: size)
        return true
    }

    private var ratePerSecondInAll: Double { Double(limits.deniedCallsPerMinuteInAll) / 60 }

    /// Forgets callers whose entry equals a new one, and tenants without callers that owe nothing.
    private mutating func forgetIdle(now: Timestamp) {
        lookedForIdleAt = now
        let (rate, size) = (perSecond, Double(limits.deniedCallsAtOnce))
        for (tenant, group) in groups {
            let kept = group.entries.filter {
                $0.value.suppressed > 0 || $0.value.bucket.fullAgain(perSecond: rate, size: size) > now
            }
            for _ in kept.count..<group.entries.count { places.left(tenant) }
            let sizeInAll = Double(limits.deniedCallsAtOnceInAll)
            let owes = group.bucket.fullAgain(perSecond: ratePerSecondInAll, size: sizeInAll) > now
            groups[tenant]?.entries = kept
            if kept.isEmpty, !owes { groups[tenant] = nil }
        }
    }
}
